import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type Devnet, startDevnet, withDatabase } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { toLowerHex } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";
import { recordColumns } from "./payment-record.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

/** One payer has as many reservations at once only if it pays for most of them. */
const payerOf = (number: number) =>
  `0x${"bb".repeat(18)}${number.toString(16).padStart(4, "0")}` as const;
const recipient = `0x${"cc".repeat(20)}` as const;
/** More than a page of an export. */
const reservations = 1_203;

async function reserveMany({ reserve }: CoinslotFacilitator): Promise<void> {
  const numbers = Array.from({ length: reservations }, (_, index) => index);
  await Promise.all(
    numbers.map((number) =>
      reserve({
        id: {
          network: devnet.network,
          asset: toLowerHex(devnet.token),
          payer: payerOf(number),
          nonce: `0x${number.toString(16).padStart(64, "0")}`,
        },
        fingerprint: "a request",
        value: 2n,
        validBefore: 2n ** 256n - 1n,
        payTo: recipient,
      }),
    ),
  );
}

describe.each(byDay(["sqlite"], ["sqlite", "postgres"]))("coinslot payments, on %s", (engine) => {
  let seller: TestSeller;
  let ledger: { url: string; drop(): Promise<void> };

  /** Runs the command beside the seller, which holds the ledger. */
  function payments(...args: string[]) {
    return runCoinslot(["payments", ...args], { env: { COINSLOT_LEDGER: ledger.url } });
  }

  beforeAll(async () => {
    if (engine === "postgres") ledger = await createTestDatabase();
    else {
      const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
      ledger = { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
    }
    seller = await startTestSeller({ devnet, ledger: ledger.url });
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
    };
    expect(await runCoinslot(["pay", `${seller.url}/weather`, "--yes"], { env })).toMatchObject({
      code: exitCode.done,
    });
    await reserveMany(seller.facilitator);
  });

  afterAll(async () => {
    await seller?.stop();
    await ledger?.drop();
  });

  it("lists a page, the newest first, and prints the command for the next one", async () => {
    const first = await payments("list", "--limit", "3", "--json");
    const { payments: page, nextCursor } = JSON.parse(first.out);
    expect(page).toHaveLength(3);
    expect(page[0]).toMatchObject({
      state: "reserved",
      payer: expect.stringMatching(/^0x(bb){18}/),
      value: "2",
      amount: "0.000002",
    });
    const second = await payments("list", "--limit", "3", "--cursor", nextCursor);
    expect(second.out.trim().split("\n")).toHaveLength(4);
    expect(second.err).toMatch(/There are more: add --cursor \w+/);
  });

  it("filters by state, payer, network and time", async () => {
    const buyer = devnet.accounts.buyer.address;
    const list = async (...args: string[]) =>
      JSON.parse((await payments("list", "--json", "--limit", "1000", ...args)).out).payments;
    expect(await list("--state", "confirmed")).toMatchObject([
      {
        payer: buyer.toLowerCase(),
        amount: "0.001",
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      },
    ]);
    expect(await list("--payer", buyer, "--from", "1h")).toHaveLength(1);
    expect(await list("--payer", buyer, "--to", "2026-01-01")).toEqual([]);
    expect(await list("--network", "eip155:988")).toEqual([]);
    expect((await payments("list", "--state", "failed")).err).toBe("No matching payments.\n");
  });

  it("filters by token and route", async () => {
    const list = async (...args: string[]) =>
      JSON.parse((await payments("list", "--json", "--limit", "1000", ...args)).out).payments;
    expect(await list("--token", devnet.token)).toHaveLength(1_000);
    expect(await list("--token", recipient)).toEqual([]);
    expect(await list("--route", "GET /weather")).toMatchObject([{ state: "confirmed" }]);
    expect(await list("--route", "GET /other")).toEqual([]);
  });

  it("counts payments, by day and route if asked for", async () => {
    const count = async (...args: string[]) =>
      JSON.parse((await payments("stats", "--json", ...args)).out).stats;
    const { network } = devnet;
    const sold = { network, state: "confirmed", count: 1, amount: "1000" };
    const held = { network, state: "reserved", count: reservations };
    expect(await count()).toEqual(
      expect.arrayContaining([expect.objectContaining(sold), expect.objectContaining(held)]),
    );
    const today = expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/);
    const divided = await count("--by", "day", "route", "--from", "1h");
    expect(divided).toContainEqual(
      expect.objectContaining({ ...sold, day: today, route: "GET /weather" }),
    );
    expect((await payments("stats", "--by", "day")).out).toMatch(/day +network +token +state/);
    expect((await payments("stats", "--to", "2026-01-01")).err).toBe("No matching payments.\n");
  });

  it("shows one payment", async () => {
    const { payments: found } = JSON.parse(
      (await payments("list", "--state", "confirmed", "--json")).out,
    );
    const shown = await payments("show", found[0].id);
    expect(shown.out).toMatch(/transaction +0x[0-9a-f]{64}/);
    expect(JSON.parse((await payments("show", found[0].id, "--json")).out)).toEqual(found[0]);
    expect(await payments("show", "nothing")).toMatchObject({
      code: exitCode.failed,
      err: "error: The ledger has no payment nothing\n",
    });
  });

  it("prints the receipt of a confirmed payment alone, also as a page", async () => {
    const list = async (state: string) =>
      JSON.parse((await payments("list", "--state", state, "--json", "--limit", "1")).out);
    const [{ id, transaction }] = (await list("confirmed")).payments;
    const receipt = JSON.parse((await payments("receipt", id)).out);
    expect(receipt).toMatchObject({ id, transaction, amount: "0.001", route: "GET /weather" });
    expect(receipt.payTo).toBe(devnet.accounts.seller.address.toLowerCase());
    const page = await payments("receipt", id, "--html");
    expect(page.out).toMatch(/^<!doctype html>[\s\S]*<h1>0\.001 USDT0<\/h1>/);
    const [open] = (await list("reserved")).payments;
    expect(await payments("receipt", open.id)).toMatchObject({
      code: exitCode.failed,
      err: `error: Payment ${open.id} is reserved: only a confirmed one has a receipt\n`,
    });
  });

  it("shows a payment without its signed forms as pruned", async () => {
    const id = "0".repeat(44);
    const bytes = (hex: string) => (engine === "sqlite" ? `x'${hex}'` : `'\\x${hex}'`);
    const [value, validBefore] = engine === "sqlite" ? ["'01:2'", "'01:9'"] : ["2", "9"];
    await withDatabase(ledger.url, ({ execute }) =>
      execute(`
        insert into archived_payments (id, network, asset, payer, nonce, value, valid_before, state,
          scheme, carried, runs, created_at)
        values ('${id}', '${devnet.network}', ${bytes(devnet.token.slice(2))},
          ${bytes("bb".repeat(20))}, ${bytes("01".repeat(32))}, ${value}, ${validBefore}, 'released',
          'eip3009', 0, 1, 5)`),
    );
    try {
      const shown = await payments("show", id);
      expect(shown.out).toMatch(/signedForms\s+pruned/);
      expect(shown.out).toContain(`0x${"bb".repeat(20)}`);
      const { out } = await payments("show", id, "--json");
      expect(JSON.parse(out)).toMatchObject({ id, state: "released", signedForms: "pruned" });
    } finally {
      await withDatabase(ledger.url, ({ execute }) => execute("delete from archived_payments"));
    }
  });

  it("exports all payments, over any number of pages", async () => {
    const { code, out } = await payments("export");
    expect(code).toBe(exitCode.done);
    const [heading, ...rows] = out.trimEnd().split("\r\n");
    expect(heading).toBe([...recordColumns, "route", "resource", "payTo", "wire"].join(","));
    expect(rows).toHaveLength(reservations + 1);
    expect(new Set(rows).size).toBe(rows.length);
    expect(rows.at(-1)).toContain("confirmed");
    const some = await payments("export", "--state", "confirmed");
    const [, sold, ...others] = some.out.trimEnd().split("\r\n");
    expect(others).toEqual([]);
    expect(sold?.split(",").slice(-4, -2)).toEqual(["GET /weather", "/weather"]);
    expect(sold?.split(",").at(-2)).toBe(seller.payTo.toLowerCase());
  });
});

describe("coinslot payments", () => {
  it("creates no ledger where it is missing", async () => {
    await inFolder(async (folder) => {
      const { code, err } = await runCoinslot(["payments", "list"], { folder });
      expect(code).toBe(exitCode.usage);
      expect(err).toContain("The ledger does not exist yet");
    });
  });

  it("refuses the ledger in memory that a devnet prints: no other process can open it", async () => {
    const env = { COINSLOT_LEDGER: "sqlite::memory:" };
    for (const args of [
      ["payments", "list"],
      ["webhooks", "list"],
    ]) {
      const { code, err } = await runCoinslot(args, { env });
      expect(code).toBe(exitCode.usage);
      expect(err).toContain("is kept in the seller's memory");
    }
  });

  it("refuses a password as an option, and repeats none", async () => {
    const url = "postgres://me:secret@127.0.0.1:1/ledger";
    const option = await runCoinslot(["payments", "list", "--ledger", url]);
    expect(option.code).toBe(exitCode.usage);
    expect(option.err).toContain("COINSLOT_LEDGER_FILE");
    const away = await runCoinslot(["payments", "list"], { env: { COINSLOT_LEDGER: url } });
    expect(away.code).toBe(exitCode.failed);
    expect(option.err + away.err).not.toContain("secret");
  });

  it("reports the fault of a filter", async () => {
    for (const args of [
      ["--state", "paid"],
      ["--from", "soon"],
      ["--limit", "0"],
      ["--payer", "me"],
      // As an id, it would start over with the first page.
      ["--cursor", "0xabc"],
    ]) {
      const { code, err } = await runCoinslot(["payments", "list", ...args]);
      expect(err).toContain(args[0]);
      expect(code).toBe(exitCode.usage);
    }
  });
});
