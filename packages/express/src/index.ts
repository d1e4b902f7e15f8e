export { isEventSecret, type ResolveHost } from "@coinslot/webhooks";
export type { DiscoveredGates } from "./discovery/discovery.ts";
export type { DiscoveryOptions, MountedGate } from "./discovery/discovery-options.ts";
export type { ListedMethod } from "./discovery/listed-method.ts";
export type { PriceBound, RouteDiscovery } from "./discovery/route-discovery.ts";
export type { EventOptions, EventOutcome } from "./events/event-options.ts";
export type { EventContent, EventSubject, LifecycleEvent } from "./events/lifecycle-event.ts";
export type { SettlementNews } from "./events/payment-events.ts";
export {
  createFacilitatorClient,
  type FacilitatorClientOptions,
} from "./facilitator/facilitator-client.ts";
export {
  type FacilitatorRouterOptions,
  facilitatorRouter,
} from "./facilitator/facilitator-router.ts";
export { type LoadFigures, readLoad } from "./load/load.ts";
export { OverloadWarning } from "./load/overload-report.ts";
export type { MppMode, MppOptions } from "./mpp-options.ts";
export type { UnpaidBody, UnpaidContext, UnpaidResponseBody } from "./offer/unpaid-context.ts";
export { type PaymentMiddleware, paymentMiddleware } from "./payment-middleware.ts";
export type {
  PaymentMiddlewareOptions,
  RefusePayerContext,
  UnpaidAnswer,
  UnpaidAnswerContext,
} from "./payment-middleware-options.ts";
export type {
  AuthorizedPayment,
  ChannelAuthorizedPayment,
  ChannelSettledPayment,
  PayingChannel,
  RequestPayment,
  SettledPayment,
} from "./request-payment.ts";
export { type ClientKey, limitKeyOf } from "./reservations/limit-key.ts";
export {
  createReservationStore,
  type ReservationStoreOptions,
} from "./reservations/reservation-store.ts";
export { withReservations } from "./reservations/with-reservations.ts";
export type {
  AcceptedPayment,
  AuthorizationRoutePayment,
  ChannelPaymentOption,
  FormerChannelTerms,
  PaymentOption,
  PaymentRoutes,
  Price,
  RouteKey,
  RoutePayment,
  RouteVerb,
  SingleRoutePayment,
  TokenPrice,
  UpfrontRoutePayment,
} from "./routes/payment-routes.ts";
export type { RefundPolicy } from "./routes/read-refund.ts";
export { visitMetrics } from "./visit-metrics.ts";
