import type { Address } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Selectable, Transaction } from "kysely";
import type { FreeRunLimit } from "../ledger-limits.ts";
import type { LedgerSchema, PayersTable } from "../schema.ts";
import { is } from "../states.ts";
import type { Commitments } from "./committed-balance.ts";
import type { PayerLimit, ReserveRequest } from "./reserve-request.ts";

/** The free runs of some payers, decided under the locks of their rows. */
export interface FreeRuns {
  /**
   * Returns whether a payer must wait. Running requests count as free until they are paid for.
   * Otherwise a burst would have run before the first of it is counted. `isCounted`: the request's
   * own row is among those that run.
   */
  limitOf(request: ReserveRequest, own: { isCounted: boolean }): Promise<PayerLimit | undefined>;
}

/** A payer's running requests that stand in the way may end in as little as this. */
const runningMs = 1_000;
const defaultShareOfPaid = 0.5;
/** Newest payments that are looked through for those that count, at most. */
const maxLookedAt = 2_000;

/** Creates the decision on free runs within one database transaction. */
export function createFreeRuns(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  releases: ReadonlyMap<Address, Selectable<PayersTable>>;
  commitments: Commitments;
  /** Unix milliseconds. */
  now: number;
  limit: FreeRunLimit;
}): FreeRuns {
  const { transaction, dialect, releases, commitments, now, limit } = options;
  const { count, windowMs, shareOfPaid = defaultShareOfPaid } = limit;

  /** A burst repeats the same query. */
  const counted = new Map<string, Promise<number>>();

  function paidRuns(request: ReserveRequest, wanted: number): Promise<number> {
    const { network, asset, payer } = request.id;
    const key = `${network}/${asset}/${payer}/${request.value}/${wanted}`;
    const known = counted.get(key) ?? countPaid(request, wanted);
    counted.set(key, known);
    return known;
  }

  /** Payments of the last window for as much as this one, or more: cheap runs earn no dear ones. */
  async function countPaid({ id, value }: ReserveRequest, wanted: number): Promise<number> {
    const rows = await transaction
      .selectFrom("payments")
      .select(["network", "asset", "value", "confirmed_at"])
      .where("payer", "=", id.payer)
      .where("state", "=", is("confirmed"))
      .orderBy("block_number", "desc")
      .limit(Math.min(2 * wanted, maxLookedAt))
      .execute();
    return rows.filter(
      (row) =>
        row.network === id.network &&
        row.asset === id.asset &&
        dialect.amount.decode(row.value) >= value &&
        (row.confirmed_at ?? 0) > now - windowMs,
    ).length;
  }

  return {
    async limitOf(request, { isCounted }) {
      const { payer } = request.id;
      const row = releases.get(payer);
      const windowEndsAt = (row?.window_started_at ?? now) + windowMs;
      const released = row !== undefined && now < windowEndsAt ? row.releases : 0;
      const used = released + commitments.running(payer) - (isCounted ? 1 : 0);
      if (used < count) return undefined;
      const wanted = shareOfPaid > 0 ? Math.ceil((used + 1) / shareOfPaid) : 0;
      const paid = wanted > 0 ? await paidRuns(request, wanted) : 0;
      const allowed = Math.max(count, Math.floor(paid * shareOfPaid));
      if (used < allowed) return undefined;
      return released < allowed
        ? { retryAfterMs: runningMs, isRunning: true }
        : { retryAfterMs: windowEndsAt - now, isRunning: false };
    },
  };
}
