export { type ChannelConfig, channelConfigSchema } from "./channels/channel-config.ts";
export {
  channelContracts,
  channelNeeds,
  channelSettlementAbi,
  channelTypeHashes,
  maxWithdrawDelay,
  minWithdrawDelay,
} from "./channels/channel-contracts.ts";
export {
  type ChannelOffer,
  channelScheme,
  correctChannelOffer,
  readChannelOffer,
} from "./channels/channel-offer.ts";
export {
  type ChannelClaim,
  type ChannelOperation,
  type ChannelPayload,
  channelOperationSchema,
  channelPayloadSchema,
  maxClaimRows,
  type Voucher,
  voucherSchema,
} from "./channels/channel-payload.ts";
export {
  type ChannelPayment,
  decodePaymentOfAnyScheme,
  encodeChannelReceipt,
  isChannelPayment,
} from "./channels/channel-payment.ts";
export {
  type ChannelCallReason,
  type ChannelReason,
  type ChannelRefusalReason,
  channelCallReasons,
  channelReasons,
  channelRefusalReasons,
} from "./channels/channel-reason.ts";
export {
  type ChannelReceipt,
  type ChannelState,
  channelReceiptSchema,
  channelStateSchema,
  formatChannelReceipt,
  formatChannelState,
  type VoucherState,
} from "./channels/channel-state.ts";
export {
  type ChannelPlace,
  type ClaimEntry,
  channelDomain,
  channelIdOf,
  channelRefundTypedData,
  channelTypes,
  claimBatchTypedData,
  depositNonce,
  depositTypedData,
  encodeCollectorData,
  voucherTypedData,
} from "./channels/typed-data.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { keccak256 } from "./evm/keccak.ts";
export type {
  ChannelDepositOutcome,
  ChannelDepositRequest,
  DepositTerms,
  PresentedDeposit,
} from "./facilitator/channel-deposit.ts";
export type {
  ChannelAdmission,
  ChannelCharge,
  ChannelCorrection,
  ChannelRefundOutcome,
  ChannelRefundRequest,
  ChannelRepeat,
  ChannelRequest,
  ChannelRun,
  ChannelSales,
  ChannelTerms,
  PresentedVoucher,
} from "./facilitator/channel-sales.ts";
export {
  type CountedVisit,
  gateReasons,
  type VisitCounter,
  type VisitReason,
  visitReasonOf,
  visitReasons,
} from "./facilitator/counted-visit.ts";
export type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  Facilitator,
  ReservingFacilitator,
  SettleOptions,
  VerifyOptions,
} from "./facilitator/facilitator.ts";
export {
  CallerGoneError,
  CallerLimitedError,
  FacilitatorError,
  StoppedError,
} from "./facilitator/facilitator-error.ts";
export {
  type FacilitatorRequest,
  type ReadFacilitatorRequest,
  readFacilitatorArguments,
  readFacilitatorRequest,
} from "./facilitator/facilitator-request.ts";
export type {
  ChannelCallAnswer,
  ChannelVerdict,
  HostedCaller,
  HostedChannels,
} from "./facilitator/hosted-channels.ts";
export {
  type ChannelSettlement,
  type ChannelVerification,
  isChannelMessage,
  readChannelSettlement,
  readChannelVerification,
} from "./facilitator/read-channel-request.ts";
export {
  type BalanceReading,
  type BegunSettlement,
  type LookUp,
  maxHandlerRuns,
  type ReleaseCause,
  type Reservation,
  type ReservationRequest,
  type ReservationStore,
  type Reservations,
  type Reserved,
  type SealedAnswer,
  type SoldItem,
  type WireName,
} from "./facilitator/reservation.ts";
export { settleTimeoutMsFor } from "./facilitator/settle-timeout.ts";
export { createVisitBoard, type VisitBoard, type VisitTally } from "./facilitator/visit-board.ts";
export {
  type Address,
  addressSchema,
  bytes32Schema,
  type Hex,
  isSameAddress,
  isWellFormedAddress,
  toLowerHex,
} from "./money/address.ts";
export { amountSchema, formatMoney, isAmount, parseMoney } from "./money/amount.ts";
export {
  type Asset,
  type ChainFacts,
  type FeeModel,
  findKnownChain,
  findKnownToken,
  type KnownChain,
  knownAsset,
  knownChains,
  multicall3Address,
  plasma,
  plasmaUsdt0,
  stable,
  stableUsdt0,
  symbolOf,
} from "./money/known-chains.ts";
export {
  type Caip2,
  caip2Of,
  chainIdOf,
  isNameOfFirstPackages,
  isNetwork,
  legacyNetworkName,
  type Network,
  networkOf,
  networkSchema,
  parseNetwork,
} from "./money/network.ts";
export { hasWitnesses, operatorOf } from "./money/rpc-operator.ts";
export type { Challenge } from "./mpp/challenge.ts";
export {
  formatChallenge,
  parseChallenges,
  prepareChallenge,
  type ReadChallenge,
} from "./mpp/challenge-header.ts";
export { challengeNonce } from "./mpp/challenge-nonce.ts";
export {
  authorizationType,
  type ChargeRequest,
  decodeChargeRequest,
  encodeChargeRequest,
  evmCharge,
  isCanonicalRequest,
} from "./mpp/charge-request.ts";
export {
  type Credential,
  decodeCredential,
  encodeCredential,
  formatSource,
  isPaymentScheme,
  isSourceOf,
  readAuthorizationPayload,
  writeAuthorizationPayload,
} from "./mpp/credential.ts";
export { decodeOpaque, encodeOpaque, type Opaque } from "./mpp/opaque.ts";
export {
  decodePaymentReceipt,
  encodePaymentReceipt,
  type PaymentReceipt,
} from "./mpp/payment-receipt.ts";
export { type Problem, type ProblemName, paymentProblem, problemMediaType } from "./mpp/problem.ts";
export { describePrice, type PriceDescription } from "./paywall/describe-price.ts";
export { escapeHtml, scriptJson } from "./paywall/escape-html.ts";
export type { PageDemand, PageForm, Paywall } from "./paywall/paywall.ts";
export {
  type Authorization,
  type AuthorizationId,
  authorizationKey,
  type ExactEvmPayload,
  exactEvmPayloadSchema,
  formatAuthorization,
  parseAuthorization,
} from "./x402/authorization.ts";
export { maxHeaderLength } from "./x402/base64-json.ts";
export { checkPayment, minimumSettlementSeconds } from "./x402/check-payment.ts";
export { DecodeError, type DecodeFault } from "./x402/decode-error.ts";
export {
  eip3009Abi,
  type TokenDomain,
  transferTypedData,
  transferWithAuthorizationTypes,
} from "./x402/eip3009.ts";
export { freezeMessage } from "./x402/frozen-message.ts";
export { headerName } from "./x402/header-name.ts";
export { type Payment, type PaymentKind, type ReadPayment, readPayment } from "./x402/payment.ts";
export { type PaymentFlow, paymentFlowSchema } from "./x402/payment-flow.ts";
export { paymentIdentifier, paymentIdentifierExtension } from "./x402/payment-identifier.ts";
export {
  composePaymentV2,
  decodePaymentV1,
  decodePaymentV2,
  encodePaymentPayload,
  type PaymentPayload,
  type PaymentPayloadV1,
  type PaymentPayloadV2,
  paymentPayloadSchema,
} from "./x402/payment-payload.ts";
export {
  decodePaymentRequired,
  encodePaymentRequired,
  type Offer,
  type OfferedRequirements,
  type PaymentRequired,
  type PaymentRequiredV1,
  parsePaymentRequiredV1,
} from "./x402/payment-required.ts";
export {
  fromPaymentRequirementsV1,
  type PaymentRequirements,
  type PaymentRequirementsV1,
  paymentRequirementsSchema,
  toPaymentRequirementsV1,
} from "./x402/payment-requirements.ts";
export {
  type InvalidReason,
  invalidReasons,
  type SettleErrorReason,
  settleErrorReasons,
} from "./x402/reason.ts";
export { recoverPayer } from "./x402/recover-payer.ts";
export { type ResourceInfo, resourceInfoSchema } from "./x402/resource-info.ts";
export {
  decodeReceipt,
  encodeReceipt,
  parseSettleResponse,
  type SettleResponse,
  settleResponseSchema,
} from "./x402/settle-response.ts";
export {
  type AnySupported,
  isSupported,
  type Supported,
  supportedSchema,
} from "./x402/supported.ts";
export {
  parseVerifyResponse,
  type VerifyResponse,
  verifyResponseSchema,
} from "./x402/verify-response.ts";
