export {
  type BridgeChain,
  bridgeChainSchema,
  type ContractKind,
  type EvmBridgeChain,
} from "./bridge-chain.ts";
export { BridgeError, type BridgeErrorCode } from "./bridge-error.ts";
export type { BridgeAccount, BridgeOptions, SourceOptions } from "./bridge-options.ts";
export type { BridgeRequest } from "./bridge-request.ts";
export { type ChainCheck, type ContractCheck, checkChain } from "./check-chain.ts";
export { type Bridge, createBridge } from "./create-bridge.ts";
export type { BridgeCallOptions, BridgeResult } from "./make-transfer.ts";
export type { AmountQuote } from "./quote-amounts.ts";
export type { BridgeQuote } from "./quote-transfer.ts";
export type { AgreedTerms } from "./spending-limit.ts";
export type { SupportedToken } from "./supported-tokens.ts";
export type { TargetBalanceRequest } from "./target-balance.ts";
export type { TokenFacts } from "./token-facts.ts";
export {
  createTopUp,
  type FundsNeed,
  type FundsRequest,
  type TopUpOptions,
  type TopUpProposal,
} from "./top-up.ts";
export type { TrackOptions } from "./track-options.ts";
export type {
  Delivered,
  InFlight,
  TrackedProgress,
  TransferProgress,
} from "./transfer-progress.ts";
export { usdt0Chains } from "./usdt0-chains.ts";
