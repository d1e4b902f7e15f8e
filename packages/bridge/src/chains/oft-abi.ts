import { parseAbi } from "viem";

/**
 * The used part of LayerZero's OFT standard (version 2) and of the application contract below it.
 * It has the errors that a transfer may meet. Amounts "LD" are in the token's own decimals.
 */
export const oftAbi = parseAbi([
  "struct SendParam { uint32 dstEid; bytes32 to; uint256 amountLD; uint256 minAmountLD; bytes extraOptions; bytes composeMsg; bytes oftCmd; }",
  "struct MessagingFee { uint256 nativeFee; uint256 lzTokenFee; }",
  "struct MessagingReceipt { bytes32 guid; uint64 nonce; MessagingFee fee; }",
  "struct OFTLimit { uint256 minAmountLD; uint256 maxAmountLD; }",
  "struct OFTReceipt { uint256 amountSentLD; uint256 amountReceivedLD; }",
  "struct OFTFeeDetail { int256 feeAmountLD; string description; }",
  "function token() view returns (address)",
  "function approvalRequired() view returns (bool)",
  "function peers(uint32 eid) view returns (bytes32)",
  "function quoteOFT(SendParam sendParam) view returns (OFTLimit limit, OFTFeeDetail[] feeDetails, OFTReceipt receipt)",
  "function quoteSend(SendParam sendParam, bool payInLzToken) view returns (MessagingFee fee)",
  "function send(SendParam sendParam, MessagingFee fee, address refundAddress) payable returns (MessagingReceipt messagingReceipt, OFTReceipt receipt)",
  "event OFTSent(bytes32 indexed guid, uint32 dstEid, address indexed fromAddress, uint256 amountSentLD, uint256 amountReceivedLD)",
  "event OFTReceived(bytes32 indexed guid, uint32 srcEid, address indexed toAddress, uint256 amountReceivedLD)",
  "error SlippageExceeded(uint256 amountLD, uint256 minAmountLD)",
  "error AmountSDOverflowed(uint256 amountSD)",
  "error InvalidLocalDecimals()",
  "error NoPeer(uint32 eid)",
  "error NotEnoughNative(uint256 msgValue)",
  "error LzTokenUnavailable()",
  "error InvalidOptions(bytes options)",
  "error LZ_InsufficientFee(uint256 requiredNative, uint256 suppliedNative, uint256 requiredLzToken, uint256 suppliedLzToken)",
  "error Executor_ZeroLzReceiveGasProvided()",
  "error EnforcedPause()",
]);
