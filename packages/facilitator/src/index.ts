export {
  type AuditEntry,
  type AuditList,
  auditListArgument,
  auditListResult,
  auditRecordArgument,
  listAuditOperation,
  recordAuditOperation,
} from "./audit/audit-operations.ts";
export type { BookEntry, BookRange, BookSum } from "./books/book-entry.ts";
export { closeBooks, sealBooks } from "./books/books-operations.ts";
export { booksCheckOperation, booksSumsOperation } from "./books/books-read-operations.ts";
export type { BooksReader, BooksStatus } from "./books/books-reader.ts";
export type { BookCheckPage, BookedTransfer, BookFault } from "./books/check-page.ts";
export type { ChainTransfer } from "./books/find-transfer.ts";
export { type Receipt, receiptOf, type Sold } from "./books/receipt.ts";
export { receiptOperation } from "./books/receipt-operation.ts";
export { receiptPage } from "./books/receipt-page.ts";
export type { ChannelRecord } from "./channels/operators/channel-record.ts";
export {
  type ChannelTotals,
  channelTotalsOperation,
  channelTotalsResult,
} from "./channels/operators/channel-totals-operation.ts";
export type { ChannelClaims } from "./channels/operators/claim-by-operator.ts";
export { claimChannelsOperation } from "./channels/operators/claim-channels-operation.ts";
export {
  type ChannelDetails,
  channelResult,
  getChannelOperation,
} from "./channels/operators/get-channel-operation.ts";
export {
  type ChannelsList,
  channelsListArgument,
  channelsListResult,
  listChannelsOperation,
} from "./channels/operators/list-channels-operation.ts";
export { refundChannelOperation } from "./channels/operators/refund-channel-operation.ts";
export type { ChannelOptions, ClaimAccount } from "./configuration/channel-options.ts";
export { channelsFromEnvironment } from "./configuration/channels-from-environment.ts";
export type { EnvironmentSource } from "./configuration/environment-source.ts";
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
export { floatFromEnvironment } from "./configuration/float-from-environment.ts";
export type {
  ChannelCaller,
  HostedChannelOptions,
} from "./configuration/hosted-channel-options.ts";
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
export { type CoinslotFacilitator, createFacilitator } from "./create-facilitator.ts";
export type {
  Abort,
  BeforeHook,
  FailureContext,
  HookContext,
  HookSet,
  ObservingHook,
  ResultContext,
} from "./hooks.ts";
export {
  type LedgerReader,
  openLedgerReader,
  type PaymentRecordPage,
} from "./ledger/ledger-reader.ts";
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
export { type AttemptLimit, createAttemptLimit } from "./operators/attempt-limit.ts";
export type { CallerWords } from "./operators/caller-headers.ts";
export type { Operation } from "./operators/operation.ts";
export { OperationRefusedError } from "./operators/operation-refused-error.ts";
export { type Operator, operatorAt } from "./operators/operator.ts";
export { getPaymentOperation } from "./operators/payment-operation.ts";
export { operations } from "./operators/registry.ts";
export { type OperatorPlace, runOperation } from "./operators/run-operation.ts";
export { digestOf, isDigestOf } from "./operators/secret-digest.ts";
export {
  type BuyersList,
  buyersListArgument,
  buyersListResult,
  listBuyersOperation,
} from "./reads/buyers-operation.ts";
export {
  type ChainsList,
  chainsListResult,
  listChainsOperation,
} from "./reads/chains-operation.ts";
export {
  listPaymentsOperation,
  type PaymentsList,
  paymentsListArgument,
  paymentsListResult,
} from "./reads/list-payments-operation.ts";
export { type PaymentRecord, paymentRecordSchema } from "./reads/payment-record.ts";
export {
  listRelayersOperation,
  type RelayersList,
  relayersListResult,
} from "./reads/relayers-operation.ts";
export {
  listRoutesOperation,
  type RoutesList,
  routesListArgument,
  routesListResult,
} from "./reads/routes-operation.ts";
export { timelineArgument, timelineOperation } from "./reads/timeline/timeline-operation.ts";
export {
  type PaymentTimeline,
  type TimelineStep,
  timelineResult,
} from "./reads/timeline/timeline-result.ts";
export { todayOperation } from "./reads/today/today-operation.ts";
export {
  type Attention,
  type Figures,
  type Today,
  todayResult,
} from "./reads/today/today-result.ts";
export { type Money, moneySchema } from "./reads/wire-forms.ts";
export { type ChannelContracts, readChannelContracts } from "./ready/channel-contracts.ts";
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
  cancelRefundOperation,
  createRefundOperation,
  exportRefundsOperation,
  getRefundOperation,
  importRefundsOperation,
  listRefundsOperation,
  markRefundPaidOperation,
  type RefundRecord,
} from "./refunds/refund-operations.ts";
export { signRefunds } from "./refunds/sign-refunds.ts";
export type { FaultPointName as CheckpointName, SettlementTimes } from "./settle/context.ts";
export type { HashSigner } from "./settle/relay/remote-signer.ts";
export type { SettlementEvent, SettlementListener } from "./settle/settlement-event.ts";
export type { RestingRelayer } from "./signer-faults.ts";
export { statsOperation } from "./stats/stats-operation.ts";
export { changeStops } from "./stops/change-stops.ts";
export type { Stop, StopChange, StopReport, StopTarget } from "./stops/stop.ts";
export { visitsOperation } from "./visits/visits-operation.ts";
export { operateWebhooks, type WebhookRange } from "./webhooks/operate-webhooks.ts";
export type { DeadWebhook, TakenEvent, WebhookStanding } from "./webhooks/webhook-operations.ts";
