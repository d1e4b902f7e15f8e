// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {TestOft} from "./TestOft.sol";

/// The end of an omnichain token on the chain where the token is at home: it locks what leaves, and releases what
/// comes back. So it needs an allowance. It takes tokens that return nothing, as USDT on Ethereum.
contract TestOftAdapter is TestOft {
    error TokenCallFailed();

    constructor(address endpoint_, address token_) TestOft(endpoint_, token_) {}

    function approvalRequired() external pure override returns (bool) {
        return true;
    }

    function _debit(address from, uint256 sent) internal override {
        _callToken(abi.encodeWithSignature("transferFrom(address,address,uint256)", from, address(this), sent));
    }

    function _credit(address to, uint256 amount) internal override {
        _callToken(abi.encodeWithSignature("transfer(address,uint256)", to, amount));
    }

    function _callToken(bytes memory data) internal {
        (bool ok, bytes memory answer) = token.call(data);
        if (!ok) {
            assembly {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        if (answer.length != 0 && !abi.decode(answer, (bool))) revert TokenCallFailed();
    }
}
