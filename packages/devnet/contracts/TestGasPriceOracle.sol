// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// What rollups of the OP stack have at a fixed address: it tells what a transaction costs besides its gas. Here each
/// byte costs the same, however well it could be compressed. It charges nothing: a devnet is no rollup.
contract TestGasPriceOracle {
    /// A signature that is not there yet is counted by its length.
    uint256 internal constant SIGNATURE_BYTES = 68;

    uint256 internal immutable l1FeePerByte;
    uint256 internal immutable operatorFeePerGas;

    constructor(uint256 l1FeePerByte_, uint256 operatorFeePerGas_) {
        l1FeePerByte = l1FeePerByte_;
        operatorFeePerGas = operatorFeePerGas_;
    }

    /// For the publication of a transaction on the chain below; `unsigned` is all of it but the signature.
    function getL1Fee(bytes calldata unsigned) external view returns (uint256) {
        return l1FeePerByte * (unsigned.length + SIGNATURE_BYTES);
    }

    /// For whoever runs the rollup. Rollups from before the upgrade Isthmus do not have it.
    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        require(operatorFeePerGas != 0);
        return operatorFeePerGas * gasUsed;
    }
}
