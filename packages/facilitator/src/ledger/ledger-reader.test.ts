import type { Hex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTestLedger, engines, type TestLedger } from "../testing/settling-devnet.ts";
import { createLedger } from "./create-ledger.ts";
import type { LedgerContext } from "./ledger-context.ts";
import { openLedgerReader } from "./ledger-reader.ts";
import { sendHeartbeat } from "./maintenance/processes.ts";
import { type LedgerDatabase, openLedger } from "./open-ledger.ts";
import { reservePayment } from "./payments/reserve-payments.ts";

const network = "eip155:9745";
const asset = `0x${"aa".repeat(20)}` satisfies Hex;
const payer = `0x${"bb".repeat(20)}` satisfies Hex;

describe.each(engines)("a reader of the ledger on %s", (engine) => {
  let place: TestLedger;
  let opened: LedgerDatabase | undefined;

  beforeEach(async () => {
    place = await createTestLedger(engine);
    opened = undefined;
  });

  afterEach(async () => {
    await opened?.close();
    await place.drop();
  });

  async function startSeller(): Promise<LedgerContext> {
    opened = await openLedger({ url: place.url, processId: "seller" });
    const ledger = createLedger({
      database: opened.database,
      processId: "seller",
      now: Date.now,
      heartbeatLeaseMs: 10_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 3, windowMs: 1_000 },
    });
    await sendHeartbeat(ledger);
    return ledger;
  }

  function reserve(ledger: LedgerContext, number: number) {
    const nonce = `0x${number.toString(16).padStart(64, "0")}` satisfies Hex;
    const id = { network, asset, payer, nonce } as const;
    return reservePayment(ledger, {
      id,
      fingerprint: "GET /a",
      payTo: payer,
      value: 10n,
      validBefore: 2n ** 64n,
    });
  }

  it("reads a ledger that a seller holds open and writes", async () => {
    const ledger = await startSeller();
    await reserve(ledger, 1);
    const reader = await openLedgerReader({ url: place.url });
    const first = await reader.payments.list();
    expect(first.payments).toMatchObject([{ state: "reserved", value: 10n }]);
    await reserve(ledger, 2);
    const { payments } = await reader.payments.list();
    expect(payments).toHaveLength(2);
    const [newest] = payments;
    expect(await reader.payments.get(newest?.id ?? "")).toEqual(newest);
    expect(await reader.payments.get("nothing")).toBeUndefined();
    expect(await reader.stats()).toMatchObject([{ state: "reserved", count: 2, amount: 20n }]);
    await reader.close();
    // It has held no lock, so the seller continues.
    await reserve(ledger, 3);
  });

  it("creates no tables where they are missing, and names the command that does", async () => {
    const owner = await openLedger({ url: place.url, processId: "seller" });
    await owner.database.kysely.schema.dropTable("coinslot_migrations").execute();
    await owner.close();
    await expect(openLedgerReader({ url: place.url })).rejects.toMatchObject({
      kind: "older-schema",
      message: expect.stringContaining("start the program that owns them"),
    });
  });
});

it("a reader of a missing SQLite ledger creates no file", async () => {
  const place = await createTestLedger("sqlite");
  await expect(openLedgerReader({ url: place.url })).rejects.toMatchObject({
    kind: "configuration",
  });
  await place.drop();
});
