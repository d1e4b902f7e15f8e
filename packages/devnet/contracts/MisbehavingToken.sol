// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {TestUsdt0} from "./TestUsdt0.sol";

/// A token that looks right and is wrong in one way at a time. The way can be changed while a test runs.
contract MisbehavingToken is TestUsdt0 {
    enum Behaviour {
        Honest,
        /// A used or cancelled authorization is taken without a word: nothing moves, nothing reverts.
        IgnoresReplay,
        /// Moves the tokens, and emits AuthorizationUsed, but no Transfer.
        EmitsNoTransfer,
        /// Moves, and emits, one unit less than was authorized.
        TransfersLess,
        /// Moves the tokens of the payer, but the Transfer names another sender.
        EmitsOtherSender,
        /// Emits Transfer before AuthorizationUsed, as the EIP leaves the order open.
        EmitsTransferFirst,
        /// Every transfer consumes all the gas it was given.
        BurnsGas,
        /// Every transfer reverts.
        Reverts,
        /// DOMAIN_SEPARATOR() is not the one of name(), version(), the chain and this address.
        WrongDomainSeparator,
        /// The payee receives a hundredth less; the difference goes to the token, with a Transfer of its own.
        TakesFee,
        /// transfer() and transferFrom() return no data, as some old tokens do.
        ReturnsNothing
    }

    Behaviour public behaviour;

    constructor(
        string memory name_,
        string memory version_,
        string memory symbol_,
        uint8 decimals_,
        Behaviour behaviour_
    ) TestUsdt0(name_, version_, symbol_, decimals_) {
        behaviour = behaviour_;
    }

    function setBehaviour(Behaviour behaviour_) external {
        behaviour = behaviour_;
    }

    /// Writes a balance that no Transfer explains.
    function setBalance(address account, uint256 value) external {
        balances[account] = value;
    }

    function transfer(address to, uint256 value) external override returns (bool) {
        _transfer(msg.sender, to, value);
        _returnNothingIfSo();
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external override returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        require(value <= allowed, "ERC20: transfer amount exceeds allowance");
        allowance[from][msg.sender] = allowed - value;
        _transfer(from, to, value);
        _returnNothingIfSo();
        return true;
    }

    function DOMAIN_SEPARATOR() public view override returns (bytes32) {
        bytes32 separator = super.DOMAIN_SEPARATOR();
        return behaviour == Behaviour.WrongDomainSeparator ? keccak256(abi.encode(separator)) : separator;
    }

    function _transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) internal override {
        if (behaviour == Behaviour.IgnoresReplay && authorizationState[from][nonce]) return;
        super._transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, signature);
    }

    function _useAndTransfer(address from, address to, uint256 value, bytes32 nonce) internal override {
        if (behaviour != Behaviour.EmitsTransferFirst) return super._useAndTransfer(from, to, value, nonce);
        authorizationState[from][nonce] = true;
        _transfer(from, to, value);
        emit AuthorizationUsed(from, nonce);
    }

    function _transfer(address from, address to, uint256 value) internal override {
        if (behaviour == Behaviour.BurnsGas) {
            assembly {
                invalid()
            }
        } else if (behaviour == Behaviour.Reverts) {
            revert("MisbehavingToken: reverts");
        } else if (behaviour == Behaviour.EmitsNoTransfer) {
            _move(from, to, value);
        } else if (behaviour == Behaviour.TransfersLess) {
            super._transfer(from, to, value - 1);
        } else if (behaviour == Behaviour.EmitsOtherSender) {
            _move(from, to, value);
            emit Transfer(address(this), to, value);
        } else if (behaviour == Behaviour.TakesFee) {
            uint256 fee = value / 100;
            super._transfer(from, to, value - fee);
            super._transfer(from, address(this), fee);
        } else {
            super._transfer(from, to, value);
        }
    }

    function _returnNothingIfSo() private view {
        if (behaviour != Behaviour.ReturnsNothing) return;
        assembly {
            return(0, 0)
        }
    }
}
