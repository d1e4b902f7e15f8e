import { isSameAddress, type PaymentRequirements } from "@coinslot/protocol";
import { type SpendableToken, toBudget } from "../pay/spendable-tokens.ts";
import type { Check } from "./check.ts";
import type { Offers } from "./offers/read-offers.ts";
import type { Target } from "./read-target.ts";
import { type Way, type WireName, wireNames } from "./way.ts";

/** The offers of the routes: of the URL, and of those that the options name. */
export interface RouteOffers {
  main: Offers;
  other: Offers | undefined;
  failing: Offers | undefined;
}

/** Highest sum of all payments, and its token. */
export interface Plan {
  /** `undefined` where no payment is made; `reason` says why. */
  token: SpendableToken | undefined;
  reason: string;
  /** The protocols that can be paid. */
  wires: WireName[];
  /** Required form of a payment on a path, by protocol. */
  terms: ReadonlyMap<string, PaymentRequirements>;
  /** Maximum number of payments. */
  count: number;
  /** Maximum of their sum, in the smallest unit. */
  total: bigint;
  /** The balance that makes a refusal the seller's: also that of a transfer to itself. */
  balance: bigint;
}

/** Key of `Plan.terms`. */
export function termsKey(path: string, wire: WireName): string {
  return `${wire} ${path}`;
}

/**
 * Plans the payments of the checks: in the first token that the offer and the person share.
 *
 * @throws UsageError for a price with more decimals than the token has
 */
export function makePlan(options: {
  target: Target;
  offers: RouteOffers;
  checks: readonly Check[];
  tokens: readonly SpendableToken[];
  maxPrice: string;
}): Plan {
  const { target, offers, checks, tokens, maxPrice } = options;
  const token = tokens.find((each) => wireNames.some((wire) => wayIn(offers.main, wire, each)));
  if (token === undefined) {
    return { ...nothing, reason: "the offer names no network and token that are configured" };
  }
  const terms = findTerms({ target, offers, token, maxPrice });
  const priceOf = (path: string | undefined, wire: WireName) => {
    const planned = path === undefined ? undefined : terms.get(termsKey(path, wire));
    return planned && BigInt(planned.amount);
  };
  const wires = wireNames.filter((wire) => priceOf(target.path, wire) !== undefined);
  if (wires.length === 0) return { ...nothing, reason: "it costs more than --max-price" };

  const prices: bigint[] = [];
  const add = (times: number, price: bigint | undefined) => {
    if (price !== undefined) prices.push(...Array.from({ length: times }, () => price));
  };
  for (const wire of wires) {
    const price = priceOf(target.path, wire);
    if (checks.some(({ usesPurchase }) => usesPurchase)) add(1, price);
    for (const { scope, needs, payments } of checks) {
      if (scope === "route" || (needs === "other" && target.otherPath === undefined)) continue;
      add(payments, needs === "failing" ? priceOf(target.failingPath, wire) : price);
    }
  }
  for (const { scope, payments } of checks) {
    if (scope === "route") add(payments, priceOf(target.path, leadingWire(wires)));
  }
  const total = prices.reduce((sum, price) => sum + price, 0n);
  const balance = wires.reduce((most, wire) => {
    const price = priceOf(target.path, wire) ?? 0n;
    return price > most ? price : most;
  }, total);
  return { token, reason: "", wires, terms, count: prices.length, total, balance };
}

const nothing = { token: undefined, wires: [], terms: new Map(), count: 0, total: 0n, balance: 0n };

/** The protocol in which a payment is made that all of them show: a challenge binds its nonce. */
export function leadingWire([first = "MPP", ...others]: readonly WireName[]): WireName {
  return others.find((wire) => wire === "MPP") ?? first;
}

/** The terms of all routes in a token, up to the maximum price. */
function findTerms(options: {
  target: Target;
  offers: RouteOffers;
  token: SpendableToken;
  maxPrice: string;
}): Map<string, PaymentRequirements> {
  const { target, offers, token, maxPrice } = options;
  const most = toBudget([token], maxPrice).assets?.[0]?.limits?.perPayment ?? 0n;
  const routes = [
    [target.path, offers.main],
    [target.otherPath, offers.other],
    [target.failingPath, offers.failing],
  ] as const;
  const terms = new Map<string, PaymentRequirements>();
  for (const [path, route] of routes) {
    for (const wire of wireNames) {
      const requirements = route && wayIn(route, wire, token)?.requirements;
      if (path === undefined || requirements === undefined) continue;
      if (BigInt(requirements.amount) <= most) terms.set(termsKey(path, wire), requirements);
    }
  }
  return terms;
}

/** The first way of a protocol in a token. */
export function wayIn(offers: Offers, wire: WireName, token: SpendableToken): Way | undefined {
  return offers[wire].ways.find(
    ({ requirements: { network, asset } }) =>
      network === token.network && isSameAddress(asset, token.address),
  );
}
