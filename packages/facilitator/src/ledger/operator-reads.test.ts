import { expect, it, onTestFinished } from "vitest";
import { openLedger } from "./open-ledger.ts";
import { createOperatorReads } from "./operator-reads.ts";
import { paymentStats } from "./queries/payment-stats.ts";

it.each(["sqlite::memory:", "sqlite://:memory:"])(
  "operators read the ledger in memory of %s",
  async (url) => {
    const { database, close } = await openLedger({ url, processId: "one" });
    onTestFinished(close);
    const reads = createOperatorReads(url, { db: database.kysely, dialect: database.dialect });
    onTestFinished(() => reads.close());
    expect(await reads.run((ledger) => paymentStats(ledger))).toEqual([]);
  },
);
