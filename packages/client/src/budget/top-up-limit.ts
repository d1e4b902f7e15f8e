import { PaymentError } from "../payment-error.ts";

/** Consecutive top-ups for one host that may end without a purchase, those under way included. */
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
   * Counts a top-up for the host until its end, which the caller reports by the returned function.
   *
   * @throws PaymentError `offer_changed` after too many top-ups without a purchase
   */
  begin(host: string): (end: TopUpEnd) => void;
}

/** Counts for the lifetime of one `createPayingFetch`. */
export function createTopUpLimit(): TopUpLimit {
  const hosts = new Map<string, { unused: number; running: number }>();
  return {
    begin(host) {
      const counts = hosts.get(host) ?? { unused: 0, running: 0 };
      if (counts.unused + counts.running >= maxUnused) {
        const text = `${maxUnused} top-ups in a row for ${host} did not end in a purchase, or are under way; no more funds are brought for it`;
        throw new PaymentError("offer_changed", text);
      }
      hosts.set(host, counts);
      counts.running += 1;
      return (end) => {
        counts.running -= 1;
        if (end === "unused") counts.unused += 1;
        if (end === "used") counts.unused = 0;
        if (counts.running + counts.unused === 0) hosts.delete(host);
      };
    },
  };
}
