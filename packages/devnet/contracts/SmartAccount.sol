// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// An EIP-1271 account with one owner, whose answer to "is this your signature?" can be changed at any time.
/// Its code also serves as an EIP-7702 delegate: in an account of that kind nobody has set an owner,
/// and then the account's own key is the owner.
contract SmartAccount {
    enum Answer {
        /// Yes to a signature of the owner, no to others.
        Honest,
        /// Always no.
        Refuses,
        /// Reverts instead of answering.
        Reverts,
        /// Consumes all the gas it is given.
        BurnsGas
    }

    bytes4 private constant YES = 0x1626ba7e;
    bytes4 private constant NO = 0xffffffff;

    address private ownerOrZero;
    Answer public answer;

    constructor(address owner_, Answer answer_) {
        ownerOrZero = owner_;
        answer = answer_;
    }

    receive() external payable {}

    function owner() public view returns (address) {
        return ownerOrZero == address(0) ? address(this) : ownerOrZero;
    }

    function setAnswer(Answer answer_) external {
        answer = answer_;
    }

    /// Lets the owner move what the account holds.
    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory) {
        require(msg.sender == owner(), "SmartAccount: caller is not the owner");
        (bool ok, bytes memory result) = target.call{value: value}(data);
        require(ok, "SmartAccount: call failed");
        return result;
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (answer == Answer.Refuses) return NO;
        require(answer != Answer.Reverts, "SmartAccount: reverts");
        if (answer == Answer.BurnsGas) {
            assembly {
                invalid()
            }
        }
        if (signature.length != 65) return NO;
        address signer =
            ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
        return signer != address(0) && signer == owner() ? YES : NO;
    }
}
