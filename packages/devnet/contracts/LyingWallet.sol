// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// An EIP-1271 account that accepts any signature, and, depending on its lie, burns all gas where it believes that
/// it runs in a block. Its code also serves as an EIP-7702 delegate.
contract LyingWallet {
    enum Lie {
        /// Accepts any signature everywhere.
        None,
        /// Burns where the call has an origin and a gas price, as a transaction has and a bare `eth_call` has not.
        HasOrigin,
        /// Burns where an account's balance of the token is cold storage, as that of a recipient is in a transaction.
        HasColdBalance,
        /// Burns in every block after one of choice: in no trial before that, however it is made.
        AfterBlock
    }

    bytes4 private constant YES = 0x1626ba7e;
    /// A read of cold storage costs 2,100 gas by itself; a warm read, with the call around it, less.
    uint256 private constant COLD_READ_GAS = 2_000;

    Lie public lie;
    /// The last block in which it is honest, or the account at whose balance it looks.
    uint248 public hint;

    function setLie(Lie lie_, uint248 hint_) external {
        lie = lie_;
        hint = hint_;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (isInBlock()) {
            assembly {
                invalid()
            }
        }
        return YES;
    }

    function isInBlock() private view returns (bool) {
        if (lie == Lie.None) return false;
        if (lie == Lie.HasOrigin) return tx.origin != address(0) && tx.gasprice > 0;
        if (lie == Lie.AfterBlock) return block.number > hint;
        bytes memory data = abi.encodeWithSignature("balanceOf(address)", address(uint160(hint)));
        uint256 before = gasleft();
        (bool ok,) = msg.sender.staticcall(data);
        return ok && before - gasleft() > COLD_READ_GAS;
    }
}
