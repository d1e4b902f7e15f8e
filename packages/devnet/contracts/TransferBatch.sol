// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IMintable {
    function mint(address to, uint256 value) external;
    function transfer(address to, uint256 value) external;
}

/// Emits many Transfers in one transaction: for indexers, which must cope with crowded blocks.
contract TransferBatch {
    /// Mints `count` units to this contract, then transfers them one by one to `recipients` addresses in turn,
    /// `firstRecipient` and those that follow it: 1 + count Transfer events.
    /// Few recipients are cheap, since each new one costs a storage slot.
    function run(IMintable token, uint256 count, address firstRecipient, uint160 recipients) external {
        token.mint(address(this), count);
        uint160 first = uint160(firstRecipient);
        for (uint256 i = 0; i < count; i++) {
            token.transfer(address(first + uint160(i % recipients)), 1);
        }
    }
}
