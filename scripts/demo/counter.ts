import { receiptOf } from "@coinslot/client";
import { decodePaymentRequired, headerName, type SettleResponse } from "@coinslot/protocol";

/** A request and its answer. */
export interface Exchange {
  method: string;
  /** Path and query. */
  target: string;
  status: number;
  /** The price in a 402, in the token's smallest unit. */
  asked: bigint | undefined;
  receipt: SettleResponse | undefined;
  milliseconds: number;
}

/** A `fetch` that keeps a note of everything that goes through it. */
export function noteExchanges(send: typeof fetch): { fetch: typeof fetch; exchanges: Exchange[] } {
  const exchanges: Exchange[] = [];
  return {
    exchanges,
    async fetch(input, init) {
      const started = performance.now();
      const response = await send(input, init);
      const { method, url } = new Request(input, init);
      const { pathname, search } = new URL(url);
      exchanges.push({
        method,
        target: `${pathname}${search}`,
        status: response.status,
        asked: priceIn(response),
        receipt: receiptOf(response),
        milliseconds: performance.now() - started,
      });
      return response;
    },
  };
}

function priceIn({ headers }: Response): bigint | undefined {
  const offer = headers.get(headerName.paymentRequired);
  const [way] = offer === null ? [] : decodePaymentRequired(offer).accepts;
  return way && BigInt(way.requirements.amount);
}
