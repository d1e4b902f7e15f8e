import { PaymentError } from "../payment-error.ts";

/** Consecutive top-ups for one host that may end without a purchase. */
const maxUnused = 3;

/** Bounds the bridge costs that a seller can cause by a price that grows with each top-up. */
export interface TopUpLimit {
  /** @throws PaymentError `offer_changed` after too many top-ups without a purchase for the host */
  check(host: string): void;
  /** Records a top-up without a purchase. */
  noteUnused(host: string): void;
  /** Records a purchase with the funds of a top-up. */
  noteUsed(host: string): void;
}

/** Counts for the lifetime of one `createPayingFetch`. */
export function createTopUpLimit(): TopUpLimit {
  const unused = new Map<string, number>();
  return {
    check(host) {
      if ((unused.get(host) ?? 0) < maxUnused) return;
      const text = `${maxUnused} top-ups in a row for ${host} did not end in a purchase; no more funds are brought for it`;
      throw new PaymentError("offer_changed", text);
    },
    noteUnused: (host) => unused.set(host, (unused.get(host) ?? 0) + 1),
    noteUsed: (host) => unused.delete(host),
  };
}
