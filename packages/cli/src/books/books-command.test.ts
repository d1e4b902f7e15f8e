import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createTestDatabase,
  type Devnet,
  startDevnet,
  testUsdt0,
  withDatabase,
} from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

const sales = 3;

const engines = byDay(["sqlite"], ["sqlite", "postgres"]);

describe.each(engines)("coinslot books, on %s", (engine) => {
  let seller: TestSeller;
  let ledger: { url: string; drop(): Promise<void> };

  /** Runs the command beside the seller, which holds the ledger. */
  function books(...args: string[]) {
    const env = {
      COINSLOT_LEDGER: ledger.url,
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
    };
    return runCoinslot(["books", ...args], { env });
  }
  /** Statements beside the seller, which do not wait for it. */
  const execute = (...statements: string[]) =>
    withDatabase(ledger.url, async (database) => {
      for (const statement of statements) await database.execute(statement);
    });
  const amountOf = (digits: string) =>
    engine === "sqlite" ? `'0${digits.length}:${digits}'` : digits;

  async function buy(): Promise<void> {
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
    };
    const paid = await runCoinslot(["pay", `${seller.url}/weather`, "--yes"], { env });
    expect(paid).toMatchObject({ code: exitCode.done });
  }

  beforeAll(async () => {
    if (engine === "postgres") ledger = await createTestDatabase();
    else {
      const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
      ledger = { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
    }
    seller = await startTestSeller({ devnet, ledger: ledger.url });
    for (let count = 0; count < sales; count += 1) await buy();
    await vi.waitFor(
      async () => {
        await devnet.mine(1);
        const { payments } = await seller.facilitator.payments.list({ state: "confirmed" });
        expect(payments.filter(({ finalAt }) => finalAt !== undefined)).toHaveLength(sales);
      },
      { timeout: 20_000 },
    );
  });

  afterAll(async () => {
    await seller?.stop();
    await ledger?.drop();
  });

  it("find no difference between entries, payments and the chain", async () => {
    const { code, out, err } = await books("check");
    expect({ code, out }).toEqual({ code: exitCode.done, out: "" });
    expect(err).toMatch(
      /^No difference\. \d+ rows compared; 3 final transfers found on the chain\.\n$/,
    );
  });

  describe("with a planted difference", () => {
    /** Keeps the tables as they were before the plant. */
    beforeAll(() =>
      execute(
        "create table kept_entries as select * from book_entries",
        "create table kept_payments as select id, state, transaction_hash from payments",
      ),
    );
    afterAll(() => execute("drop table kept_entries", "drop table kept_payments"));
    const columns =
      "posted_at, route_id, pay_to_id, debit, credit, source_id, amount, network, asset";
    afterEach(() =>
      execute(
        "update payments set state = (select state from kept_payments where kept_payments.id = payments.id), transaction_hash = (select transaction_hash from kept_payments where kept_payments.id = payments.id)",
        "delete from book_entries",
        `insert into book_entries (${columns}) select ${columns} from kept_entries`,
      ),
    );
    const firstSale = "(select min(source_id) from book_entries where debit = 1)";
    const firstPayment = "(select min(id) from payments)";
    const copyWith = (column: string, value: string) =>
      `insert into book_entries (${columns}) select ${columns.replace(column, value)} from kept_entries where source_id = ${firstSale}`;

    it.each([
      {
        name: "an entry that is missing",
        plant: [`delete from book_entries where source_id = ${firstSale}`],
        found: [/^no entry +eip155/],
      },
      {
        name: "an entry too many",
        plant: [copyWith("debit", "debit")],
        found: [/^one entry too many/],
      },
      {
        name: "an entry of another amount",
        plant: [
          copyWith("amount", amountOf("77")),
          `delete from book_entries where source_id = ${firstSale} and amount <> ${amountOf("77")}`,
        ],
        found: [/^wrong entry/],
      },
      {
        name: "an entry of a payment that is not there",
        plant: [copyWith("source_id", "'unknown'")],
        found: [/^entry of no payment .*unknown/],
      },
      {
        name: "a payment whose transfer is in another transaction",
        plant: [
          `update payments set transaction_hash = '0x${"77".repeat(32)}' where id = ${firstPayment}`,
        ],
        found: [/^no transfer .*0\.001 USDT0 .*0x7777/, /^not ours .*0\.001 USDT0/],
      },
      {
        name: "a transfer whose payment is not confirmed",
        plant: [
          // Blocks are read from that of the first confirmed payment on. The seller watches failed
          // ones.
          `update payments set state = 'released' where id = (select max(id) from payments)`,
        ],
        found: [/^not posted .*0\.001 USDT0/],
      },
    ])("name $name", async ({ plant, found }) => {
      await execute(...plant);
      const { code, out, err } = await books("check");
      const [, ...rows] = out.trimEnd().split("\n");
      expect(rows).toHaveLength(found.length);
      for (const [index, words] of found.entries()) expect(rows[index]).toMatch(words);
      expect(err).toBe("error: One difference.\n");
      expect(code).toBe(exitCode.failed);
    });
  });

  it("are exported entry by entry, and in sums", async () => {
    const { out } = await books("export", "--rate", "XPL=0.25");
    const [heading = "", ...rows] = out.trimEnd().split("\r\n");
    expect(heading).toMatch(
      /^time,network,token,route,movement,debit,credit,amount,currency,usd,value/,
    );
    const sold = rows.filter((row) => row.includes(",payment,wallet,income,0.001,USDT0,"));
    expect(sold).toHaveLength(sales);
    for (const row of sold) expect(row).toMatch(/GET \/weather,.*0x[0-9a-f]{64},.*,final,1$/);
    const gas = rows.filter((row) => row.includes(",gas,gas,relayers,"));
    expect(gas.length).toBeGreaterThan(0);
    expect(rows).toHaveLength(sold.length + gas.length);
    const today = new Date().toISOString().slice(0, 10);
    const sums = await books("export", "--by", "day", "route");
    expect(sums.out).toContain(
      `${today},GET /weather,payment,wallet,income,0.003,USDT0,,${sales}\r\n`,
    );
    expect((await books("export", "--to", "2026-01-01")).out.trimEnd().split("\r\n")).toEqual([
      heading,
    ]);
    const bean = await books("export", "--format", "beancount", "--by", "day", "network");
    expect(bean.out).toContain("  Assets:Coinslot:Wallet:Eip155-9745  0.003 USDT0\n");
    expect((await books("export", "--rate", "XPL=much")).code).toBe(exitCode.usage);
    expect((await books("export", "--from", "2026-02-30")).code).toBe(exitCode.usage);
  });

  it("are shown as balances, whose sum per currency is zero", async () => {
    const { out } = await books("show", "--json");
    const { balances, closedUntil, isUnfinished, unpricedTransactions } = JSON.parse(out);
    expect({ closedUntil, isUnfinished, unpricedTransactions }).toEqual({
      ...{ closedUntil: null, isUnfinished: false, unpricedTransactions: 0 },
    });
    const of = (account: string) =>
      balances.find((balance: { account: string }) => balance.account === account);
    const { network } = devnet;
    expect(of("wallet")).toEqual({
      account: "wallet",
      network,
      amount: "0.003",
      currency: "USDT0",
    });
    expect(of("income").amount).toBe("-0.003");
    expect(of("relayers").amount).toBe(`-${of("gas").amount}`);
    expect(Number(of("gas").amount)).toBeGreaterThan(0);
  });

  it("close a period that is over, through the seller that holds the ledger", async () => {
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const today = new Date().toISOString().slice(0, 10);
    const early = await books("close", "--until", today);
    expect(early).toMatchObject({ code: exitCode.failed });
    expect(early.err).toContain("is not over yet");
    for (const words of ["The books are closed", "The books were closed before"]) {
      const closed = await books("close", "--until", yesterday);
      expect(closed).toMatchObject({ code: exitCode.done, err: "" });
      expect(closed.out).toContain(`${words} up to the end of ${yesterday}.`);
      expect(closed.out).toMatch(/Digest: [0-9a-f]{64}\n/);
    }
    expect((await books("show")).err).toBe(`Closed up to the end of ${yesterday}.\n`);
    expect((await books("close", "--until", "2026-01-01")).code).toBe(exitCode.failed);
    expect((await books("check")).code).toBe(exitCode.done);
    await execute(
      `insert into book_sums (day, network, asset, route_id, debit, credit, count, amount, digest)
        values (20000, '${devnet.network}', '${devnet.token}', 0, 1, 2, 1, ${amountOf("5")}, '')`,
    );
    expect((await books("check")).out).toContain("closed period changed");
    const { out } = await books("export");
    expect(out).toContain("2024-10-04T00:00:00.000Z,");
    expect(out).toContain(",payment,wallet,income,0.000005,USDT0,,5,,,,,,1\r\n");
    await execute("delete from book_sums");
  });

  it("list other transfers to the recipient as not ours, which are no difference", async () => {
    const { buyer, seller: recipient } = devnet.accounts;
    const hash = await devnet.client.writeContract({
      account: buyer,
      chain: null,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [recipient.address, 42n],
    });
    await devnet.mine(12);
    const { code, out } = await books("check");
    expect(code).toBe(exitCode.done);
    expect(out).toContain("not ours");
    expect(out).toMatch(new RegExp(`0\\.000042 USDT0 +${hash} from ${buyer.address}`, "i"));
    // Its block is after those of this time.
    expect((await books("check", "--to", "2026-01-01")).out).toBe("");
    // Sums of forgotten payments cover it: their transfers are not compared one by one.
    const today = Math.floor(Date.now() / 86_400_000);
    await execute(
      `insert into book_sums (day, network, asset, route_id, debit, credit, count, amount, digest)
        values (${today}, '${devnet.network}', '${devnet.token.toLowerCase()}', 0, 1, 2, 1, ${amountOf("42")}, '')`,
    );
    const summed = await books("check");
    await execute("delete from book_sums");
    expect(summed).toMatchObject({ code: exitCode.done, out: "" });
    expect(summed.err).toContain("; 1 entries of forgotten payments are in sums");
  });
});
