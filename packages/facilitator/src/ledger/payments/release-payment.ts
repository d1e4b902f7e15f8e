import type { Address } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { ExpressionBuilder, Transaction } from "kysely";
import type { LedgerSchema } from "../schema.ts";
import { givenUp, is, timeIsOver } from "../states.ts";
import { lockPayers } from "./lock-payers.ts";

/**
 * `reserved` → `released` (or back to `failed`), by the holder of the token. A resumed payment
 * keeps its state and only loses its holder.
 *
 * The racer is `enqueue` with the same token: one of the two statements finds `reserved`, the other
 * nothing.
 */
export async function releasePayment(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  token: string;
  payer: Address;
  /**
   * Whether it counts against the payer: the seller has worked for nothing. `if_failed`: only where
   * the payment came to nothing on the chain, its balance gone or its authorization cancelled.
   */
  countsAgainstPayer: boolean | "if_failed";
  /** Whether the handler has run for it: counted once, with the token that is given up. */
  hasRun: boolean;
  /** Unix milliseconds. */
  now: number;
  releaseWindowMs: number;
}): Promise<void> {
  const { transaction, dialect, token, payer, countsAgainstPayer, hasRun, now } = options;
  const { releaseWindowMs } = options;
  // First, in the order of a reservation: two orders of locking could deadlock.
  const releases = (await lockPayers({ transaction, dialect, payers: [payer], now })).get(payer);
  const { numUpdatedRows } = await transaction
    .updateTable("payments")
    .set((set) => ({ state: givenUp(set), token: null, owner: null, runs: runsOf(set) }))
    .where("token", "=", token)
    .where("state", "=", is("reserved"))
    .executeTakeFirst();
  let isFreeRun = numUpdatedRows > 0n && countsAgainstPayer === true;
  if (numUpdatedRows === 0n) {
    const ended = await transaction
      .updateTable("payments")
      .set((set) => ({ token: null, owner: null, runs: runsOf(set) }))
      .where("token", "=", token)
      .returning(["state", "reason"])
      .executeTakeFirst();
    // A payment that was not sent or mined in time is no fault of its payer.
    const isPayersFault = ended?.state === "failed" && ended.reason !== timeIsOver;
    isFreeRun = countsAgainstPayer === "if_failed" && isPayersFault;
  }
  if (isFreeRun && releases !== undefined) {
    const isSameWindow = now - releases.window_started_at < releaseWindowMs;
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

  function runsOf(set: ExpressionBuilder<LedgerSchema, "payments">) {
    return set("runs", "+", hasRun ? 1 : 0);
  }
}
