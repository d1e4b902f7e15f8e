// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// Collects a channel's deposit by an EIP-3009 authorization, with the interface and the behaviour of the
/// contract that stands at 0x4020806089470a89826cB9fB1f4059150b550004. The authorization's nonce is a hash of
/// the channel, so it funds no other one, whoever sends it.
contract TestErc3009Collector {
    error OnlyX402BatchSettlement();
    error SafeERC20FailedOperation(address token);

    address internal immutable SETTLEMENT;

    constructor(address settlement) {
        SETTLEMENT = settlement;
    }

    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata collectorData)
        external
    {
        if (msg.sender != SETTLEMENT) revert OnlyX402BatchSettlement();
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(collectorData, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        IToken(token).receiveWithAuthorization(payer, address(this), amount, validAfter, validBefore, nonce, signature);
        (bool ok, bytes memory answer) = token.call(abi.encodeCall(IToken.transfer, (SETTLEMENT, amount)));
        if (!ok) {
            assembly {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        if (answer.length > 0 && abi.decode(answer, (uint256)) != 1) revert SafeERC20FailedOperation(token);
    }
}
