import { CompiledQuery } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  asset,
  inclusion,
  network,
  payer,
  queue,
  submit,
  wish,
} from "../../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { openLedger } from "../open-ledger.ts";
import { findCommitted, selectCommitments } from "./committed-balance.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("the committed balance on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("is never committed twice, under racing reservations of one payer", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const balance = { amount: 25n, blockNumber: 4n };
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        reservePayment(index % 2 ? one : two, wish({ balance })),
      ),
    );
    expect(results.filter(({ outcome }) => outcome === "reserved")).toHaveLength(2);
    expect(results.filter(({ outcome }) => outcome === "over_committed")).toHaveLength(6);
  });

  it("includes a confirmed payment exactly when the balance was read before its block", async () => {
    const ledger = await join("one");
    const id = await submit(ledger, { balance: { amount: 10n, blockNumber: 4n } });
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const before = await reservePayment(
      ledger,
      wish({ balance: { amount: 19n, blockNumber: 4n } }),
    );
    expect(before).toMatchObject({ outcome: "over_committed" });
    const after = await reservePayment(ledger, wish({ balance: { amount: 19n, blockNumber: 5n } }));
    expect(after).toMatchObject({ outcome: "reserved" });
  });

  it("excludes an amount that the balance already lacks, even if no block was read yet", async () => {
    const ledger = await join("one");
    const mined = await submit(ledger);
    await queue(ledger);
    const promised = await findCommitted(ledger, { network, asset, payer, limit: 10 });
    expect(promised.map(({ state }) => state).sort()).toEqual(["queued", "submitted"]);
    const exact = wish({ balance: { amount: 20n, blockNumber: 5n } });
    expect(await reservePayment(ledger, exact)).toMatchObject({ outcome: "over_committed" });
    expect(await reservePayment(ledger, exact, [mined])).toMatchObject({ outcome: "reserved" });
    const beyond = wish({ balance: { amount: 20n, blockNumber: 5n } });
    expect(await reservePayment(ledger, beyond, [mined])).toMatchObject({
      outcome: "over_committed",
    });
  });

  it("includes a dead process's reservation once for payments decided in the same batch", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const balance = { amount: 20n, blockNumber: 4n };
    const wanted = wish({ balance });
    expect(await reservePayment(one, wanted)).toMatchObject({ outcome: "reserved" });
    await silence("one");
    const wishes = [wanted, wish({ balance }), wish({ balance })];
    const results = await Promise.all(wishes.map((each) => reservePayment(two, each)));
    expect(results.map(({ outcome }) => outcome)).toEqual([
      "reserved",
      "reserved",
      "over_committed",
    ]);
  });
});

it("is read without a scan of a payer's whole history", async () => {
  const { url, drop } = await copyMigratedLedger("sqlite");
  const { database, close } = await openLedger({ url, processId: "one" });
  const { kysely: db, dialect } = database;
  const oldest = new Map([[network, 4]] as const);
  const query = selectCommitments({ db, dialect, payers: [payer], oldest, alreadyDebited: [] });
  const { sql, parameters } = query.compile();
  const { rows } = await db.executeQuery<{ detail: string }>(
    CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
  );
  expect(rows.map(({ detail }) => detail).filter((detail) => detail.includes("payments"))).toEqual([
    "SEARCH payments USING INDEX payments_payer (payer=? AND state=?)",
    "SEARCH payments USING INDEX payments_payer (payer=? AND state=? AND block_number>?)",
  ]);
  await close();
  await drop();
});
