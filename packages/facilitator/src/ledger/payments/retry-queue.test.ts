import { type Database, DatabaseError } from "@coinslot/storage";
import { expect, it } from "vitest";
import { wish } from "../../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { createLedger } from "../create-ledger.ts";
import { openLedger } from "../open-ledger.ts";
import { lookUpPayment } from "../queries/look-up-payments.ts";
import type { LedgerSchema } from "../schema.ts";
import { reservePayment } from "./reserve-payments.ts";

it("the retry queue releases a reservation whose write was never acknowledged", async () => {
  const place = await copyMigratedLedger("postgres");
  const { database, close } = await openLedger({ url: place.url, processId: "one" });
  let isLost = true;
  const transaction: Database<LedgerSchema>["transaction"] = async (work, options) => {
    const result = await database.transaction(work, options);
    if (isLost) throw new DatabaseError("connection-lost", "The answer to the commit was lost");
    return result;
  };
  const ledger = createLedger({
    database: { ...database, transaction },
    processId: "one",
    now: Date.now,
    heartbeatLeaseMs: 10_000,
    keepAnswersMs: 60_000,
    releaseLimit: { count: 3, windowMs: 1_000 },
  });
  const wanted = wish();
  await expect(reservePayment(ledger, wanted)).rejects.toThrow(DatabaseError);
  expect(await lookUpPayment(ledger, wanted)).toMatchObject({ availability: "in_use" });
  await expect(ledger.pendingEnds.retryPending()).rejects.toThrow(DatabaseError);
  isLost = false;
  await ledger.pendingEnds.retryPending();
  expect(await lookUpPayment(ledger, wanted)).toMatchObject({ availability: "free" });
  expect(await reservePayment(ledger, wanted)).toMatchObject({ outcome: "reserved" });
  await close();
  await place.drop();
});
