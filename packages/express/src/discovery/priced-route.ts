import { channelScheme } from "@coinslot/protocol";
import { advertise } from "../wires/registry.ts";
import type { ListedRoute } from "./list-routes.ts";
import { type PriceInfo, priceInfoOf } from "./price-info.ts";

/** `x-payment-info` of an operation, in both dialects. */
export interface PaymentInfo {
  /** Read by `@agentcash/discovery`. */
  price: PriceInfo;
  /** Read by `@agentcash/discovery`. */
  protocols: readonly object[];
  /** draft-payment-discovery-00. */
  offers?: readonly object[];
}

/** A route with its payment, ready to be written. */
export interface PricedRoute extends ListedRoute {
  payment: PaymentInfo;
}

/**
 * Adds to a route its payment.
 *
 * @throws while its gate cannot take one
 */
export function priceRoute(listed: ListedRoute): PricedRoute {
  const { gate, route, discovery } = listed;
  const versionsOf = gate.servedVersions();
  if (versionsOf === undefined) throw new Error("The gate of a listed route is not ready");
  const { mpp = gate.settings.mpp.mode } = route;
  const ways = route.accepts.map((terms) => ({
    ...terms,
    scheme: terms.channel === undefined ? "exact" : channelScheme,
    versions: terms.channel === undefined ? versionsOf(terms.network) : new Set([2] as const),
    mpp: terms.channel === undefined ? mpp : false,
  }));
  const { protocols, offers } = advertise(ways);
  const price = priceInfoOf(route.accepts, discovery.bounds);
  // The draft wants at least one offer, or no list.
  const payment = { price, protocols, ...(offers.length === 0 ? {} : { offers }) };
  return { ...listed, payment };
}
