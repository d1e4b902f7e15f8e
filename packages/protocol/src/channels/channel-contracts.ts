import { parseAbi } from "viem";
import type { Address, Hex } from "../money/address.ts";

/**
 * Contracts of the `batch-settlement` scheme. Their creation by CREATE2 gives the same addresses on
 * every chain that has them.
 */
export const channelContracts = {
  /** The escrow of all channels, `x402BatchSettlement`. */
  settlement: "0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003",
  /** Collects a deposit by an EIP-3009 authorization. */
  erc3009Collector: "0x4020806089470a89826cB9fB1f4059150b550004",
  /** Collects a deposit by Permit2. */
  permit2Collector: "0x4020425FAf3B746C082C2f942b4E5159887B0005",
} as const satisfies Record<string, Address>;

/** Contracts that those above need, or that put them onto a chain. */
export const channelNeeds = {
  /** Executes deposits by Permit2. */
  permit2: "0x000000000022D473030F116dDEE9F6B43aC78BA3",
  /** Puts a contract at the same address on every chain, for any sender. */
  create2Deployer: "0x4e59b44847b379578588920cA78FbF26c0B4956C",
} as const satisfies Record<string, Address>;

/** EIP-712 type hashes of the escrow, by the names of its public constants. */
export const channelTypeHashes = {
  CHANNEL_CONFIG_TYPEHASH: "0x1c9a06ceab9b0ebbd3301dc56c9111bb6d9af421356dc9ccb3b7084c755db308",
  VOUCHER_TYPEHASH: "0x1e1bd6ff84c3e0d9029a292b212e039c0ca97ec497c55191a4a5874294609a69",
  REFUND_TYPEHASH: "0xbe23ad087435072cd69b49cc5b92de10ee610fce7ae0ab428307972d764bb216",
  CLAIM_ENTRY_TYPEHASH: "0x30b9a0367528fca13c3e8ec6134c3113f1887ebe7a1ad61de0955aac288b0cf5",
  CLAIM_BATCH_TYPEHASH: "0x42bd57c010b870c2e96203c66341f28a6a19b4d56a74533a8eb5f706b9fd6d57",
} as const satisfies Record<string, Hex>;

/** Bounds of a channel's `withdrawDelay`, in seconds. The contract takes no deposit outside. */
export const minWithdrawDelay = 900;
export const maxWithdrawDelay = 2_592_000;

/** Interface of the escrow contract. */
export const channelSettlementAbi = parseAbi([
  "struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }",
  "struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }",
  "struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }",
  "function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)",
  "function claim(VoucherClaim[] voucherClaims)",
  "function claimWithSignature(VoucherClaim[] voucherClaims, bytes authorizerSignature)",
  "function settle(address receiver, address token)",
  "function refund(ChannelConfig config, uint128 amount)",
  "function refundWithSignature(ChannelConfig config, uint128 amount, uint256 nonce, bytes receiverAuthorizerSignature)",
  "function initiateWithdraw(ChannelConfig config, uint128 amount)",
  "function finalizeWithdraw(ChannelConfig config)",
  "function multicall(bytes[] data) returns (bytes[] results)",
  "function channels(bytes32 channelId) view returns (uint128 balance, uint128 totalClaimed)",
  "function pendingWithdrawals(bytes32 channelId) view returns (uint128 amount, uint40 initiatedAt)",
  "function refundNonce(bytes32 channelId) view returns (uint256)",
  "function receivers(address receiver, address token) view returns (uint128 totalClaimed, uint128 totalSettled)",
  "function getChannelId(ChannelConfig config) view returns (bytes32)",
  "function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) view returns (bytes32)",
  "function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) view returns (bytes32)",
  "function getClaimBatchDigest(VoucherClaim[] voucherClaims) view returns (bytes32)",
  "function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)",
  "function CHANNEL_CONFIG_TYPEHASH() view returns (bytes32)",
  "function VOUCHER_TYPEHASH() view returns (bytes32)",
  "function REFUND_TYPEHASH() view returns (bytes32)",
  "function CLAIM_ENTRY_TYPEHASH() view returns (bytes32)",
  "function CLAIM_BATCH_TYPEHASH() view returns (bytes32)",
  "function MIN_WITHDRAW_DELAY() view returns (uint40)",
  "function MAX_WITHDRAW_DELAY() view returns (uint40)",
  "event ChannelCreated(bytes32 indexed channelId, ChannelConfig config)",
  "event ChannelClosed(bytes32 indexed channelId, ChannelConfig config)",
  "event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance)",
  "event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed)",
  "event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount)",
  "event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount)",
  "event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter)",
  "event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount)",
  "error InvalidChannel()",
  "error ZeroDeposit()",
  "error DepositOverflow()",
  "error InvalidSignature()",
  "error NotReceiverAuthorizer()",
  "error NotAuthorizedToClaim()",
  "error NotAuthorizedToRefund()",
  "error ClaimExceedsCeiling()",
  "error ClaimExceedsBalance()",
  "error WithdrawalAlreadyPending()",
  "error WithdrawalNotPending()",
  "error NotAuthorizedToFinalizeWithdraw()",
  "error WithdrawDelayNotElapsed()",
  "error NothingToWithdraw()",
  "error WithdrawAmountExceedsAvailable()",
  "error WithdrawDelayOutOfRange()",
  "error EmptyBatch()",
  "error DepositCollectionFailed()",
  "error InvalidCollector()",
  "error InvalidRefundNonce()",
  "error ZeroRefund()",
  "error ReentrancyGuardReentrantCall()",
  "error SafeERC20FailedOperation(address token)",
  "error ECDSAInvalidSignature()",
  "error ECDSAInvalidSignatureLength(uint256 length)",
  "error ECDSAInvalidSignatureS(bytes32 s)",
]);
