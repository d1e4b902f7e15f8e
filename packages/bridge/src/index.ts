export { BridgeError, type BridgeErrorCode } from "./bridge-error.ts";
export type { BridgeAccount, BridgeOptions, SourceOptions } from "./bridge-options.ts";
export type { BridgeRequest } from "./bridge-request.ts";
export {
  type BridgeChain,
  bridgeChainSchema,
  type ContractKind,
  type EvmBridgeChain,
} from "./chains/bridge-chain.ts";
export { type ChainCheck, type ContractCheck, checkChain } from "./chains/check-chain.ts";
export type { SupportedToken } from "./chains/supported-tokens.ts";
export type { TargetBalanceRequest } from "./chains/target-balance.ts";
export type { TokenFacts } from "./chains/token-facts.ts";
export { usdt0Chains } from "./chains/usdt0-chains.ts";
export { type Bridge, createBridge } from "./create-bridge.ts";
export type { AmountQuote } from "./quote/quote-amounts.ts";
export type { BridgeQuote } from "./quote/quote-transfer.ts";
export type { BridgeCallOptions, BridgeResult } from "./send/make-transfer.ts";
export type { AgreedTerms } from "./send/spending-limit.ts";
export type {
  Delivered,
  InFlight,
  TrackedProgress,
  TransferProgress,
} from "./send/transfer-progress.ts";
export { createTopUp } from "./top-up/create-top-up.ts";
export type { FundsNeed, FundsRequest, TopUpProposal } from "./top-up/funds-request.ts";
export type { TopUpOptions } from "./top-up/top-up-context.ts";
export type { TrackOptions } from "./track/track-options.ts";
