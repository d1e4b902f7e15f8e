import { PaymentError } from "../payment-error.ts";

/** Top-ups for one host that may fail in a row to end in a purchase. */
const maxUnused = 3;

/** Bounds what a seller can make a buyer pay for bridges, by a price that grows with each top-up. */
export interface TopUpLimit {
  /** @throws PaymentError `offer_changed` when too many top-ups for the host were for nothing */
  check(host: string): void;
  /** Funds were brought, and the purchase did not follow. */
  noteUnused(host: string): void;
  /** Something was bought with the funds that were brought. */
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
