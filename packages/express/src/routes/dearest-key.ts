import { isDeepStrictEqual } from "node:util";
import type { PaymentTerms } from "./read-payment-option.ts";
import type { Route } from "./read-routes.ts";

/**
 * The key whose price buys the content of all of these keys, the first one of equals. `malformed`:
 * there is none: prices of two functions, other recipients and terms of channels differ in kind. A
 * function that both have asks one price for one request. A fault comes before any key.
 */
export function dearestOf<Fault extends string>(
  found: readonly (Route | Fault | undefined)[],
): Route | Fault | "malformed" | undefined {
  const keys = [...new Set(found)].filter((each) => each !== undefined);
  if (keys.length < 2) return keys[0];
  const routes = keys.filter((key) => typeof key === "object");
  const fault = keys.find((key) => typeof key === "string");
  return fault ?? routes.find((key) => routes.every((other) => buys(key, other))) ?? "malformed";
}

/** Returns whether each way to pay for a key pays for another one, at a price that is no higher. */
function buys(key: Route, other: Route): boolean {
  return key === other || key.accepts.every((way) => other.accepts.some((each) => pays(way, each)));
}

function pays(way: PaymentTerms, other: PaymentTerms): boolean {
  const { network, payTo, price, channel } = way;
  if (network !== other.network || payTo !== other.payTo) return false;
  if (!isDeepStrictEqual(channel, other.channel)) return false;
  if (price === other.price) return true;
  return (
    typeof price === "object" &&
    typeof other.price === "object" &&
    price.asset.toLowerCase() === other.price.asset.toLowerCase() &&
    BigInt(price.amount) >= BigInt(other.price.amount)
  );
}
