import { PaymentError } from "../payment-error.ts";

/** Consecutive top-ups for one host that may end without a purchase. */
const maxUnused = 3;

/**
 * End of a top-up.
 *
 * - `used`: a purchase took more than was there before.
 * - `unused`: it brought funds, and there was no such purchase.
 * - `neither`: it brought nothing, or the outcome of such a purchase is unknown.
 */
export type TopUpEnd = "used" | "unused" | "neither";

/** Bounds the bridge costs that a seller can cause by a price that grows with each top-up. */
export interface TopUpLimit {
  /**
   * Begins a top-up for the host. The caller reports its end by the returned function, before the
   * next one begins.
   *
   * @throws PaymentError `offer_changed` after too many top-ups without a purchase
   */
  begin(host: string): (end: TopUpEnd) => void;
}

/** Counts for the lifetime of one `createPayingFetch`. */
export function createTopUpLimit(): TopUpLimit {
  const unused = new Map<string, number>();
  return {
    begin(host) {
      const count = unused.get(host) ?? 0;
      if (count >= maxUnused) {
        const text = `${maxUnused} top-ups in a row for ${host} did not end in a purchase; no more funds are brought for it`;
        throw new PaymentError("offer_changed", text);
      }
      return (end) => {
        if (end === "unused") unused.set(host, count + 1);
        if (end === "used") unused.delete(host);
      };
    },
  };
}
