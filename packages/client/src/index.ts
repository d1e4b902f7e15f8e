export type { Budget, BudgetAsset, SpendingLimits } from "./budget/spending-policy.ts";
export type { RpcUrls } from "./chain/chain-reader.ts";
export type { ChannelOptions } from "./channels/channel-options.ts";
export type { ChannelSummary } from "./channels/manage-channels.ts";
export { readChannels, type StoredChannel } from "./channels/read-channels.ts";
export type { ChannelRefund } from "./channels/refund-channel.ts";
export type { ChannelWithdrawal } from "./channels/withdraw-channel.ts";
export { findRefunds } from "./find-refunds.ts";
export { OfferRefusedError, type Refusal, type RefusalCode } from "./offer/offer-refused-error.ts";
export { createPayingFetch, type PayingFetch } from "./paying-fetch.ts";
export type { PayingFetchOptions } from "./paying-fetch-options.ts";
export { PaymentError, type PaymentErrorCode } from "./payment-error.ts";
export type { PaymentEvent, PaymentState } from "./payment-event.ts";
export type { FoundRefund, FoundRefunds, RefundablePayment } from "./refunds/find-refunds.ts";
export { refundNonce } from "./refunds/refund-nonce.ts";
export { OutcomeUnclearError } from "./send/outcome-unclear-error.ts";
export { type PaymentOutcome, paymentOf, receiptOf } from "./send/payment-outcome.ts";
export type { PayerOptions, PayingAccount } from "./sign/payer.ts";
export {
  type PaymentTerms,
  type SignedPayment,
  signedPaymentSchema,
} from "./sign/signed-payment.ts";
export type { TopUp, TopUpNeed, TopUpRequest } from "./top-up.ts";
export type { Protocol } from "./wires/wire.ts";
export { readOffer } from "./wires/x402/read-offer.ts";
