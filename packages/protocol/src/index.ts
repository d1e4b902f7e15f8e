export {
  type Address,
  addressSchema,
  bytes32Schema,
  type Hex,
  isSameAddress,
  isWellFormedAddress,
  toLowerHex,
} from "./address.ts";
export { amountSchema, formatMoney, isAmount, parseMoney } from "./amount.ts";
export {
  type Authorization,
  type AuthorizationId,
  authorizationKey,
  type ExactEvmPayload,
  exactEvmPayloadSchema,
  formatAuthorization,
  parseAuthorization,
} from "./authorization.ts";
export { maxHeaderLength } from "./base64-json.ts";
export { checkPayment, minimumSettlementSeconds } from "./check-payment.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { DecodeError, type DecodeFault } from "./decode-error.ts";
export {
  eip3009Abi,
  type TokenDomain,
  transferTypedData,
  transferWithAuthorizationTypes,
} from "./eip3009.ts";
export type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  Facilitator,
  ReservingFacilitator,
  SettleOptions,
  VerifyOptions,
} from "./facilitator.ts";
export { FacilitatorError } from "./facilitator-error.ts";
export {
  type FacilitatorRequest,
  type ReadFacilitatorRequest,
  readFacilitatorArguments,
  readFacilitatorRequest,
} from "./facilitator-request.ts";
export { freezeMessage } from "./frozen-message.ts";
export { headerName } from "./header-name.ts";
export {
  type Asset,
  knownAsset,
  plasma,
  plasmaUsdt0,
  stable,
  stableUsdt0,
} from "./known-asset.ts";
export { findKnownToken } from "./known-token.ts";
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
} from "./network.ts";
export { type Payment, type ReadPayment, readPayment } from "./payment.ts";
export { type PaymentFlow, paymentFlowSchema } from "./payment-flow.ts";
export { paymentIdentifier, paymentIdentifierExtension } from "./payment-identifier.ts";
export {
  decodePaymentV1,
  decodePaymentV2,
  encodePaymentPayload,
  type PaymentPayload,
  type PaymentPayloadV1,
  type PaymentPayloadV2,
  paymentPayloadSchema,
} from "./payment-payload.ts";
export {
  decodePaymentRequired,
  encodePaymentRequired,
  type Offer,
  type OfferedRequirements,
  type PaymentRequired,
  type PaymentRequiredV1,
  parsePaymentRequiredV1,
} from "./payment-required.ts";
export {
  fromPaymentRequirementsV1,
  type PaymentRequirements,
  type PaymentRequirementsV1,
  paymentRequirementsSchema,
  toPaymentRequirementsV1,
} from "./payment-requirements.ts";
export {
  type InvalidReason,
  invalidReasons,
  type SettleErrorReason,
  settleErrorReasons,
} from "./reason.ts";
export { recoverPayer } from "./recover-payer.ts";
export {
  type BalanceReading,
  type BegunSettlement,
  type LookUp,
  mostHandlerRuns,
  type ReleaseCause,
  type Reservation,
  type ReservationRequest,
  type ReservationStore,
  type Reservations,
  type Reserved,
  type SealedAnswer,
} from "./reservation.ts";
export { type ResourceInfo, resourceInfoSchema } from "./resource-info.ts";
export {
  decodeReceipt,
  encodeReceipt,
  parseSettleResponse,
  type SettleResponse,
  settleResponseSchema,
} from "./settle-response.ts";
export { type AnySupported, isSupported, type Supported, supportedSchema } from "./supported.ts";
export {
  parseVerifyResponse,
  type VerifyResponse,
  verifyResponseSchema,
} from "./verify-response.ts";
