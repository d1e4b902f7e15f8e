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
  /** Accounts that have signed refunds of this ledger, cached for a minute: a read of all refunds. */
  readFloats(): Promise<readonly Address[]>;
}

/** Pauses between two looks at a refund, in milliseconds. */
export const looks = {
  /** While the engine works on it, or its payment is not final. */
  soon: 1_000,
  /** While it waits for money, a limit or a node. */
  waiting: 15_000,
  /** While only an operator, or a token's issuer, can end its wait. */
  rare: 600_000,
} as const;

/** A change, with the pause until the next look. */
export function later(
  { context }: Pick<RefundsContext, "context">,
  pauseMs: number,
  change: RefundChange,
): RefundChange {
  return { ...change, next_at: context.ledger.now() + pauseMs };
}
