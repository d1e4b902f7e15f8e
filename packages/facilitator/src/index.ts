export type { BookEntry, BookRange, BookSum } from "./books/book-entry.ts";
export { closeBooks, sealBooks } from "./books/books-operations.ts";
export type { BooksReader, BooksStatus } from "./books/books-reader.ts";
export type { BookCheckPage, BookedTransfer, BookFault } from "./books/check-entries.ts";
export type { ChainTransfer } from "./books/find-transfer.ts";
export { type Receipt, receiptOf, type Sold } from "./books/receipt.ts";
export { receiptPage } from "./books/receipt-page.ts";
export {
  type FacilitatorConfiguration,
  readFacilitatorOptions,
} from "./configuration/facilitator-configuration.ts";
export type {
  Depth,
  FacilitatorNetworkOptions,
  FacilitatorOptions,
  FeeOptions,
} from "./configuration/facilitator-options.ts";
export type { OperatorOptions } from "./configuration/operator-options.ts";
export type { FloatAccount, FloatLimit, RefundOptions } from "./configuration/refund-options.ts";
export type { RelayerOptions } from "./configuration/relayer-account.ts";
export type {
  PayersWithCodeOptions,
  SettlementOptions,
} from "./configuration/settlement-options.ts";
export {
  type WebhookEventType,
  type WebhookOptions,
  webhookEventTypes,
} from "./configuration/webhook-options.ts";
export {
  type CoinslotFacilitator,
  createFacilitator,
  type RestingRelayer,
} from "./create-facilitator.ts";
export type {
  Abort,
  BeforeHook,
  FailureContext,
  HookContext,
  HookSet,
  ObservingHook,
  ResultContext,
} from "./hooks.ts";
export { type LedgerReader, openLedgerReader } from "./ledger/ledger-reader.ts";
export type { Inclusion, LedgerPayment } from "./ledger/payments/ledger-payment.ts";
export type { PaymentFilter, PaymentPage } from "./ledger/queries/list-payments.ts";
export type { RelayerStanding, RelayerState } from "./ledger/queries/list-relayers.ts";
export type { PaymentStats, StatsGroup, StatsOptions } from "./ledger/queries/payment-stats.ts";
export type {
  CreateRefund,
  Refund,
  RefundFilter,
  RefundPage,
} from "./ledger/refunds/refund.ts";
export { RefundError, type RefundErrorReason } from "./ledger/refunds/refund-error.ts";
export { refundNonce } from "./ledger/refunds/refund-nonce.ts";
export { type RefundCause, type RefundState, refundStates } from "./ledger/refunds-schema.ts";
export { type PaymentState, paymentStates } from "./ledger/schema.ts";
export type { Logger } from "./logger.ts";
export type { OperatorEndpoint } from "./operators/ask-seller.ts";
export { OperationRefusedError } from "./operators/operation-refused-error.ts";
export { getPaymentOperation } from "./operators/payment-operation.ts";
export { type OperatorPlace, runOperation } from "./operators/run-operation.ts";
export { checkRelayers } from "./ready/check-relayers.ts";
export { checkTokens } from "./ready/check-tokens.ts";
export type { Findings } from "./ready/findings.ts";
export type { ExportRefunds, ImportedRefunds, Refunds } from "./refunds/refund.ts";
export {
  type SignedRefunds,
  signedRefundsSchema,
  type UnsignedRefunds,
  unsignedRefundsSchema,
} from "./refunds/refund-file.ts";
export {
  approveRefundOperation,
  createRefundOperation,
  exportRefundsOperation,
  getRefundOperation,
  importRefundsOperation,
  listRefundsOperation,
  type RefundRecord,
} from "./refunds/refund-operations.ts";
export { signRefunds } from "./refunds/sign-refunds.ts";
export type { FaultPointName as CheckpointName, SettlementTimes } from "./settle/context.ts";
export type { HashSigner } from "./settle/relay/remote-signer.ts";
export type { SettlementEvent, SettlementListener } from "./settle/settlement-event.ts";
export { changeStops } from "./stops/change-stops.ts";
export type { Stop, StopChange, StopReport, StopTarget } from "./stops/stop.ts";
export { operateWebhooks, type WebhookRange } from "./webhooks/operate-webhooks.ts";
export type { DeadWebhook, TakenEvent, WebhookStanding } from "./webhooks/webhook-operations.ts";
