import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type Devnet, startDevnet } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

async function createLedger(engine: "sqlite" | "postgres") {
  if (engine === "postgres") return createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
  return { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
}

describe.each(byDay(["sqlite"], ["sqlite", "postgres"]))("coinslot stats, on %s", (engine) => {
  it("sums money and gas, and counts requests that bought nothing", async () => {
    const ledger = await createLedger(engine);
    onTestFinished(() => ledger.drop());
    const stats = (...args: string[]) =>
      runCoinslot(["stats", ...args], { env: { COINSLOT_LEDGER: ledger.url } });
    const seller = await startTestSeller({ devnet, ledger: ledger.url });
    try {
      expect((await stats()).err).toContain("Nothing was sold");
      const env = {
        COINSLOT_NETWORK: devnet.network,
        COINSLOT_RPC_URL: devnet.rpcUrl,
        WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
      };
      for (const route of ["weather", "weather"]) {
        const paid = await runCoinslot(["pay", `${seller.url}/${route}`, "--yes"], { env });
        expect(paid).toMatchObject({ code: exitCode.done });
      }
      await fetch(`${seller.url}/weather`, { headers: { "payment-signature": "nonsense" } });
    } finally {
      // Stores what it has counted.
      await seller.stop();
    }

    const table = await stats();
    expect(table.code).toBe(exitCode.done);
    expect(table.out).toMatch(/USDT0\s+2\s+0\s+0\.002\s+0\s+0/);
    expect(table.out).toMatch(/invalid_payload\s+1/);

    const { money, gas, visits } = JSON.parse((await stats("--by", "day", "route", "--json")).out);
    const { network, token } = devnet;
    const asset = token.toLowerCase();
    const day = new Date().toISOString().slice(0, 10);
    const none = { charges: 0, refunds: 0, refunded: "0" };
    expect(money).toEqual([
      { day, route: "GET /weather", network, asset, payments: 2, income: "2000", ...none },
    ]);
    expect(gas).toMatchObject([{ day, network, transactions: 2 }]);
    expect(BigInt(gas[0].wei)).toBeGreaterThan(0n);
    const unknown = { network: null, asset: null };
    expect(visits).toEqual(
      expect.arrayContaining([
        { day, route: "GET /weather", ...unknown, reason: "offered", count: 2 },
        { day, route: "GET /weather", ...unknown, reason: "invalid_payload", count: 1 },
      ]),
    );
    const earlier = await stats("--to", day);
    expect(earlier.err).toContain("Nothing was sold");
  });

  it("refuses a day that is none, and a division that is none", async () => {
    const env = { COINSLOT_LEDGER: "sqlite:none.db" };
    for (const args of [
      ["--from", "2026-13-01"],
      ["--from", "24h"],
      ["--by", "payer"],
    ]) {
      expect(await runCoinslot(["stats", ...args], { env })).toMatchObject({
        code: exitCode.usage,
      });
    }
  });
});
