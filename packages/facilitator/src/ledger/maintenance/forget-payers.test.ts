import type { Hex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { engines, type TestLedger } from "../../testing/settling-devnet.ts";
import { createLedger } from "../create-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { type LedgerDatabase, openLedger } from "../open-ledger.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { forgetPayers } from "./forget-payers.ts";
import { sendHeartbeat } from "./processes.ts";
import { retentionSteps } from "./retention-steps.ts";

const network = "eip155:9745";
const payTo = `0x${"dd".repeat(20)}` satisfies Hex;
const day = 86_400_000;

describe.each(engines)("payers in a ledger on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase;
  let ledger: LedgerContext;
  let now: number;
  let nonces = 0;

  beforeEach(async () => {
    now = 1_000 * day;
    place = await copyMigratedLedger(engine);
    opened = await openLedger({ url: place.url, processId: "one" });
    ledger = createLedger({
      database: opened.database,
      processId: "one",
      now: () => now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 2, windowMs: 2 * day },
    });
    await sendHeartbeat(ledger);
  });

  afterEach(async () => {
    await opened.close();
    await place.drop();
  });

  const payerOf = (number: number): Hex => `0x${number.toString(16).padStart(40, "0")}`;

  async function reserve(payer: Hex) {
    nonces += 1;
    const id = { network, asset: payTo, payer, nonce: payerOf(nonces) } as const;
    const validBefore = BigInt(Math.floor(now / 1000)) + 300n;
    return reservePayment(ledger, { id, fingerprint: "GET /a", value: 1n, validBefore, payTo });
  }

  async function runFree(payer: Hex) {
    const reserved = await reserve(payer);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    await releasePayment(ledger, { token: reserved.token, payer, countsAgainstPayer: true });
  }

  /** A whole pass of retention, with everything kept for an hour after its end. */
  async function retire() {
    const times = {
      keepSignaturesMs: 3_600_000,
      keepPaymentsMs: undefined,
      keepUndeliveredMs: undefined,
    };
    for (const step of retentionSteps(ledger, times)) while ((await step()) === "again");
  }

  const known = async () => {
    const rows = await ledger.db.selectFrom("payers").select("payer").orderBy("payer").execute();
    return rows.map(({ payer }) => payer);
  };

  it("are forgotten once their payments are archived and their free runs count no more", async () => {
    // More than one step, around one that has bought.
    const others = Array.from({ length: 60 }, (_, index) => payerOf(100 + index));
    const free = { releases: 1, window_started_at: now };
    await ledger.db
      .insertInto("payers")
      .values(others.map((payer) => ({ payer, ...free })))
      .execute();
    const buying = payerOf(120);
    await runFree(buying);
    await retire();
    expect(await known()).toEqual(others);
    now += 3 * day + 1;
    expect(await reserve(buying)).toMatchObject({ outcome: "reserved" });
    await retire();
    expect(await known()).toEqual([buying]);
    await ledger.db.deleteFrom("payments").execute();
    await retire();
    expect(await known()).toEqual([]);
  });

  it("keep the limit of their free runs until the end of its window", async () => {
    const payer = payerOf(1);
    await runFree(payer);
    await runFree(payer);
    await ledger.db.deleteFrom("payments").execute();
    now += 1.5 * day;
    await retire();
    expect(await reserve(payer)).toMatchObject({ outcome: "payer_limited" });
  });
});

describe("payers in a ledger on postgres, beside a reservation", () => {
  it("stay while a transaction has found the row of one, and has not locked it yet", async () => {
    const place = await copyMigratedLedger("postgres");
    const opened = await openLedger({ url: place.url, processId: "one" });
    try {
      const ledger = createLedger({
        database: opened.database,
        processId: "one",
        now: Date.now,
        heartbeatLeaseMs: 10_000,
        keepAnswersMs: 60_000,
        releaseLimit: { count: 2, windowMs: 2 * day },
      });
      const { kysely } = opened.database;
      const payer = payTo;
      const old = { payer, releases: 0, window_started_at: 0 };
      await kysely.insertInto("payers").values(old).execute();
      await kysely.transaction().execute(async (transaction) => {
        await transaction
          .insertInto("payers")
          .values(old)
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        expect(await forgetPayers(ledger, { after: "", limit: 50 })).toBeUndefined();
        const rows = transaction.selectFrom("payers").select("payer").forUpdate().execute();
        expect(await rows).toEqual([{ payer }]);
      });
      await forgetPayers(ledger, { after: "", limit: 50 });
      expect(await kysely.selectFrom("payers").select("payer").execute()).toEqual([]);
    } finally {
      await opened.close();
      await place.drop();
    }
  });
});
