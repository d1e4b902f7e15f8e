export { type CoinslotFacilitator, createFacilitator } from "./create-facilitator.ts";
export {
  type FacilitatorConfiguration,
  readFacilitatorOptions,
} from "./facilitator-configuration.ts";
export type {
  Depth,
  FacilitatorNetworkOptions,
  FacilitatorOptions,
  FeeOptions,
} from "./facilitator-options.ts";
export type {
  Abort,
  BeforeHook,
  FailureContext,
  HookContext,
  HookSet,
  ObservingHook,
  ResultContext,
} from "./hooks.ts";
export type { Inclusion, LedgerPayment } from "./ledger/ledger-payment.ts";
export { type LedgerReader, openLedgerReader } from "./ledger/ledger-reader.ts";
export { type PaymentState, paymentStates } from "./ledger/ledger-schema.ts";
export type { PaymentFilter, PaymentPage } from "./ledger/list-payments.ts";
export type { PaymentStats } from "./ledger/payment-stats.ts";
export type { Logger } from "./logger.ts";
export { checkRelayers } from "./ready/check-relayers.ts";
export { checkTokens } from "./ready/check-tokens.ts";
export type { Findings } from "./ready/findings.ts";
export type { RelayerOptions } from "./relayer-account.ts";
export type { CheckpointName, SettlementTimes } from "./settle/settlement-context.ts";
export type { SettlementEvent, SettlementListener } from "./settle/settlement-event.ts";
export type { PayersWithCodeOptions, SettlementOptions } from "./settlement-options.ts";
