// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {TestUsdt0} from "./TestUsdt0.sol";

/// The stablecoin with what its OFT needs to take tokens off the chain: burning without an allowance.
contract TestOmnichainToken is TestUsdt0 {
    address public oftContract;

    constructor(string memory name_, string memory version_, string memory symbol_, uint8 decimals_)
        TestUsdt0(name_, version_, symbol_, decimals_)
    {}

    function setOftContract(address oftContract_) external {
        oftContract = oftContract_;
    }

    function burn(address from, uint256 value) external {
        require(msg.sender == oftContract, "OFT: caller is not the OFT");
        require(balances[from] >= value, "ERC20: burn amount exceeds balance");
        balances[from] -= value;
        totalSupply -= value;
        emit Transfer(from, address(0), value);
    }
}
