import type { AuthorizationId, Hex, Network, SettleErrorReason } from "@coinslot/protocol";

import type { RefundCause, RefundState } from "../ledger/refunds-schema.ts";

/** Events of payments and relayers, for subscribers. */
export type SettlementEvent =
  /** The first transaction that carries the payment is being broadcast. */
  | { type: "settle_started"; authorization: AuthorizationId; transactionHash: Hex }
  /** Its Transfer stands in a block: also after an answer that was still pending, or failed. */
  | { type: "settle_completed"; authorization: AuthorizationId; transactionHash: Hex }
  | { type: "settle_failed"; authorization: AuthorizationId; reason: SettleErrorReason }
  /** Its block has left the chain; it is under way again. */
  | { type: "settle_reorganised"; authorization: AuthorizationId; wasDelivered: boolean }
  /** A refund is in another state. Its cause says for what it waits. */
  | {
      type: "refund_changed";
      /** Ids of the refund and of its payment. */
      refund: string;
      payment: string;
      network: Network;
      asset: Hex;
      payer: Hex;
      /** In the token's smallest unit. */
      amount: bigint;
      state: RefundState;
      cause: RefundCause | undefined;
      transactionHash: Hex | undefined;
    }
  | { type: "relayer_funds_low"; network: Network; relayer: Hex; balance: bigint }
  | { type: "relayer_funds_exhausted"; network: Network; relayer: Hex; balance: bigint }
  | { type: "relayer_funds_restored"; network: Network; relayer: Hex; balance: bigint };

export type SettlementListener = (event: SettlementEvent) => void;
