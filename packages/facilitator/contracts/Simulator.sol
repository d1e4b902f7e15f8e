// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A signed EIP-3009 transfer, and the token that is to make it.
struct Transfer {
    address asset;
    address from;
    address to;
    uint256 value;
    uint256 validAfter;
    uint256 validBefore;
    bytes32 nonce;
    /// For a payer without code. All zero where the signature has not the form of one key's.
    uint8 v;
    bytes32 r;
    bytes32 s;
    /// For a payer with code, as the payer wrote it. Empty where that is r, s, v in 65 bytes.
    bytes signature;
}

enum Outcome {
    /// There was not enough gas left to ask fairly.
    NotAsked,
    Succeeded,
    Reverted
}

/// What was found before the call, and what the call did. Every member is one word (`reason` four), so
/// that an answer has a size known beforehand.
struct Reading {
    Outcome outcome;
    /// The payer lost `value`, `to` gained it, and the authorization was unused before and used after.
    bool isExact;
    bool isUsed;
    uint256 balance;
    uint256 payerCodeSize;
    uint256 assetCodeSize;
    /// By the token call, with the token and the balances already touched.
    uint256 gasUsed;
    /// The beginning of what the call reverted with, filled up with zeros.
    bytes32[4] reason;
}

/// Tries transfers, each as if it were the only one, and deploys nothing: as the data of an `eth_call`
/// without `to` it runs as a constructor, and what a constructor returns is the answer of the call.
///
/// A constructor cannot call itself, so the frames in which transfers run are calls of a contract that
/// it creates first.
contract Simulator {
    /// For every transfer: its part of the answer is paid for like code (352 bytes, 200 gas each), and
    /// encoded.
    uint256 private constant GAS_PER_ANSWER = 100_000;

    /// @param callGas what each token call may use
    /// @param frameGas what each frame gets: `callGas`, and enough for the frame's own readings
    constructor(Transfer[] memory transfers, uint256 callGas, uint256 frameGas) {
        Frame frame = new Frame();
        Reading[] memory readings = new Reading[](transfers.length);
        // A call passes on at most 63 of 64 parts of what is left. A node may have granted less gas than
        // was asked for: better no answer than one that a neighbour's appetite has spoiled.
        uint256 gasNeeded = frameGas + frameGas / 63 + GAS_PER_ANSWER * transfers.length;
        for (uint256 i = 0; i < transfers.length && gasleft() > gasNeeded; i++) {
            (, bytes memory answer) =
                address(frame).call{gas: frameGas}(abi.encodeCall(Frame.run, (transfers[i], callGas)));
            if (answer.length > 0) readings[i] = abi.decode(answer, (Reading));
            else readings[i].outcome = Outcome.Reverted;
        }
        bytes memory answers = abi.encode(currentBlock(), block.timestamp, readings);
        assembly {
            return(add(answers, 32), mload(answers))
        }
    }

    /// On Arbitrum `block.number` is that of the parent chain, and a system contract tells the real one.
    function currentBlock() private view returns (uint256) {
        address arbSys = address(100);
        if (arbSys.code.length == 0) return block.number;
        (bool ok, bytes memory answer) = arbSys.staticcall(abi.encodeWithSignature("arbBlockNumber()"));
        return ok && answer.length == 32 ? abi.decode(answer, (uint256)) : block.number;
    }
}

/// Makes one transfer, and reverts with what it saw: nothing that happened in it remains.
contract Frame {
    /// What one reading of the token may use. The token is not trusted either.
    uint256 private constant READ_GAS = 30_000;

    bytes4 private constant AUTHORIZATION_STATE = bytes4(keccak256("authorizationState(address,bytes32)"));
    bytes4 private constant BALANCE_OF = bytes4(keccak256("balanceOf(address)"));
    bytes4 private constant TRANSFER_BY_KEY = bytes4(
        keccak256(
            "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
        )
    );
    bytes4 private constant TRANSFER_BY_CODE =
        bytes4(keccak256("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"));

    function run(Transfer calldata transfer, uint256 callGas) external {
        Reading memory reading;
        reading.payerCodeSize = transfer.from.code.length;
        reading.assetCodeSize = transfer.asset.code.length;
        reading.isUsed = isUsed(transfer);
        reading.balance = balanceOf(transfer.asset, transfer.from);
        uint256 received = balanceOf(transfer.asset, transfer.to);

        bytes memory data = reading.payerCodeSize == 0 ? callByKey(transfer) : callByCode(transfer);
        address asset = transfer.asset;
        bytes32[4] memory reason = reading.reason;
        bool succeeded;
        uint256 gasBefore = gasleft();
        assembly {
            // Solidity's own call would copy all that comes back, however much.
            succeeded := call(callGas, asset, 0, add(data, 32), mload(data), 0, 0)
        }
        reading.gasUsed = gasBefore - gasleft();
        reading.outcome = succeeded ? Outcome.Succeeded : Outcome.Reverted;
        if (succeeded) {
            unchecked {
                reading.isExact = !reading.isUsed && isUsed(transfer)
                    && reading.balance - balanceOf(asset, transfer.from) == transfer.value
                    && balanceOf(asset, transfer.to) - received == transfer.value;
            }
        } else {
            assembly {
                let size := returndatasize()
                if gt(size, 128) { size := 128 }
                returndatacopy(reason, 0, size)
            }
        }
        bytes memory answer = abi.encode(reading);
        assembly {
            revert(add(answer, 32), mload(answer))
        }
    }

    function callByKey(Transfer calldata t) private pure returns (bytes memory) {
        return abi.encodeWithSelector(
            TRANSFER_BY_KEY, t.from, t.to, t.value, t.validAfter, t.validBefore, t.nonce, t.v, t.r, t.s
        );
    }

    function callByCode(Transfer calldata t) private pure returns (bytes memory) {
        bytes memory signature = t.signature.length == 0 && t.v != 0 ? abi.encodePacked(t.r, t.s, t.v) : t.signature;
        return abi.encodeWithSelector(
            TRANSFER_BY_CODE, t.from, t.to, t.value, t.validAfter, t.validBefore, t.nonce, signature
        );
    }

    function isUsed(Transfer calldata transfer) private view returns (bool) {
        return read(transfer.asset, abi.encodeWithSelector(AUTHORIZATION_STATE, transfer.from, transfer.nonce)) != 0;
    }

    function balanceOf(address asset, address account) private view returns (uint256) {
        return read(asset, abi.encodeWithSelector(BALANCE_OF, account));
    }

    /// One word of the token's answer, and zero where there is none.
    function read(address asset, bytes memory data) private view returns (uint256 word) {
        assembly {
            mstore(0, 0)
            let ok := staticcall(READ_GAS, asset, add(data, 32), mload(data), 0, 32)
            if and(ok, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }
}
