import type { Address } from "@coinslot/protocol";
import { sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { givenUp, is, timeIsOver } from "../states.ts";
import { lockPayers } from "./lock-payers.ts";

export interface ReleaseRequest {
  token: string;
  payer: Address;
  /**
   * True if it counts against the payer: the seller has worked for nothing. `if_failed`: only where
   * the payment failed on the chain, its balance gone or its authorization cancelled.
   */
  countsAgainstPayer: boolean | "if_failed";
  /** True if the handler has run under this reservation: counted once. Default false. */
  hasRun?: boolean | undefined;
  /**
   * True if the buyer has left before its answer, false if the seller has failed. `undefined`: not
   * known. A buyer that has left once stays gone: all but the last byte may have reached it.
   */
  isAbandoned?: boolean | undefined;
}

/**
 * `reserved` → `released` (or back to `failed`), by the holder of the token. A resumed payment
 * keeps its state and only loses its holder. A write that fails is queued for a retry.
 *
 * The racer is `enqueue` with the same token: one of the two statements finds `reserved`, the other
 * nothing.
 */
export function releasePayment(ledger: LedgerContext, request: ReleaseRequest): Promise<void> {
  return ledger.pendingEnds.write(request.token, () => writeRelease(ledger, request));
}

/** As `releasePayment`, without the retry queue. */
export function writeRelease(ledger: LedgerContext, request: ReleaseRequest): Promise<void> {
  return ledger.write((transaction) => release(ledger, transaction, request), forProcess);
}

async function release(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { token, payer, countsAgainstPayer, hasRun = false, isAbandoned }: ReleaseRequest,
): Promise<void> {
  const { dialect, releaseLimit } = ledger;
  const now = ledger.now();
  // First, in the order of a reservation: two orders of locking could deadlock.
  const releases = (await lockPayers({ transaction, dialect, payers: [payer], now })).get(payer);
  const { numUpdatedRows } = await transaction
    .updateTable("payments")
    .set((set) => ({
      state: givenUp(set),
      token: null,
      owner: null,
      runs: set("runs", "+", hasRun ? 1 : 0),
    }))
    .where("token", "=", token)
    .where("state", "=", is("reserved"))
    .executeTakeFirst();
  let isFreeRun = numUpdatedRows > 0n && countsAgainstPayer === true;
  if (numUpdatedRows === 0n) {
    const ended = await transaction
      .updateTable("payments")
      .set({
        token: null,
        owner: null,
        ...(isAbandoned === true ? { is_abandoned: 1 } : {}),
        ...(isAbandoned === false ? { is_abandoned: sql<number>`coalesce(is_abandoned, 0)` } : {}),
      })
      .where("token", "=", token)
      .returning(["state", "reason"])
      .executeTakeFirst();
    // A payment that was not sent or mined in time is no fault of its payer.
    const isPayersFault = ended?.state === "failed" && ended.reason !== timeIsOver;
    isFreeRun = countsAgainstPayer === "if_failed" && isPayersFault;
  }
  if (isFreeRun && releases !== undefined) {
    const isSameWindow = now - releases.window_started_at < releaseLimit.windowMs;
    await transaction
      .updateTable("payers")
      .set(
        isSameWindow
          ? { releases: releases.releases + 1 }
          : { releases: 1, window_started_at: now },
      )
      .where("payer", "=", payer)
      .execute();
  }
}
