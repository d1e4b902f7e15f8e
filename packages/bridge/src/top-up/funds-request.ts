import type { BridgeRequest } from "../bridge-request.ts";
import type { BridgeQuote } from "../quote/quote-transfer.ts";

/** A fetch's need of funds for a payment. Amounts in the smallest unit. */
export interface FundsNeed {
  /** CAIP-2, such as "eip155:9745". */
  network: string;
  /** The token there. */
  asset: string;
  amount: bigint;
  balance: bigint;
}

/** A request for funds. Any one of `needs` is enough; the best comes first. */
export interface FundsRequest {
  payer: string;
  needs: readonly FundsNeed[];
  signal: AbortSignal | undefined;
}

/** A proposed transfer, with its price. */
export interface TopUpProposal {
  request: BridgeRequest;
  quote: BridgeQuote;
  /** With the current balance. */
  need: FundsNeed;
}
