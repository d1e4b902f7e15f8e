import type { Address, Network } from "@coinslot/protocol";
import type { RefundSettings } from "../configuration/refund-options.ts";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { SettlementContext } from "../settle/context.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import type { TokenFacts } from "../token/token-facts.ts";

/** Shared by the steps of refunds. */
export interface RefundsContext {
  context: SettlementContext;
  settings: RefundSettings;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  /** Facts of a token, cached for a minute. */
  readFacts(row: Pick<RefundRow, "network" | "asset">): Promise<TokenFacts>;
  /** By refund, the block from which the next look searches downwards for the use of its nonce. */
  searches: Map<string, bigint>;
  /**
   * Accounts that have signed refunds of this ledger, cached for a minute: a read of all refunds.
   */
  readFloats(): Promise<readonly Address[]>;
}

/**
 * Pauses between two looks at a refund, in multiples of `times.refundMs`: by default, in seconds.
 */
export const looks = {
  /** While the engine works on it, or its payment is not final. */
  soon: 1,
  /** While it waits for money, a limit or a node. */
  waiting: 15,
  /** While only an operator, or a token's issuer, can end its wait. */
  rare: 600,
  /** Bound on the pause between two looks for the work of other processes: one statement each. */
  forOthers: 5,
  /** After a track has ended: what it wrote may be due again. */
  busy: 0.2,
} as const;

/** Columns of a refund that stands in no block. */
export const inNoBlock = {
  transaction_hash: null,
  block_number: null,
  block_hash: null,
  confirmed_at: null,
} as const;

/** A change, with the pause until the next look, as one of `looks`. */
export function later(
  { context }: Pick<RefundsContext, "context">,
  pause: number,
  change: RefundChange,
): RefundChange {
  return { ...change, next_at: context.ledger.now() + pause * context.times.refundMs };
}
