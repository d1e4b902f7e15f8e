import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type Devnet, startDevnet } from "@coinslot/devnet";
import { changeStops, operatorAt, recordAuditOperation } from "@coinslot/facilitator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

const hostile = "Ann\u001b[2J\u202e";
const isUnsafe = (text: string) => text.includes("\u001b") || text.includes("\u202e");

describe.each(["sqlite", "postgres"] as const)("the operator's reads, on %s", (engine) => {
  let seller: TestSeller;
  let ledger: { url: string; drop(): Promise<void> };

  function coinslot(...args: string[]) {
    return runCoinslot(args, { env: { COINSLOT_LEDGER: ledger.url } });
  }
  const json = async (...args: string[]) => JSON.parse((await coinslot(...args, "--json")).out);

  beforeAll(async () => {
    if (engine === "postgres") ledger = await createTestDatabase();
    else {
      const folder = await mkdtemp(join(tmpdir(), "coinslot-reads-"));
      ledger = { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
    }
    seller = await startTestSeller({ devnet, ledger: ledger.url });
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
    };
    const paid = await runCoinslot(["pay", `${seller.url}/weather`, "--yes"], { env });
    expect(paid.code).toBe(exitCode.done);
    const target = { kind: "route", name: "GET /news" } as const;
    await changeStops({
      url: ledger.url,
      change: { operation: "set", target, reason: "an empty paper" },
    });
    await operatorAt(ledger.url).run(recordAuditOperation, {
      operation: "session.open",
      outcome: "done",
      account: hostile,
      argument: { agent: hostile },
    });
  });

  afterAll(async () => {
    await seller?.stop();
    await ledger?.drop();
  });

  it("find a payment by each text, and tell its way", async () => {
    const buyer = devnet.accounts.buyer.address;
    const [{ id, nonce, transaction }] = (await json("payments", "list", buyer)).payments;
    for (const [text, kind] of [
      [buyer, "payer"],
      [nonce, "nonce"],
      [transaction, "transaction"],
      [id, "payment"],
      ["weather", "route"],
    ]) {
      const { matched, payments } = await json("payments", "list", text);
      expect(matched).toEqual({ kind, routes: [] });
      expect(payments).toMatchObject([{ id, route: "GET /weather", wire: "x402v2" }]);
    }
    const listed = await coinslot("payments", "list", "weather");
    expect(listed.out).toMatch(/confirmed.*GET \/weather/);
    expect(listed.err).toBe("Found as a route.\n");
    const timeline = await coinslot("payments", "timeline", id);
    expect(timeline.out).toMatch(
      /^time \(UTC\) .*\nunknown +offered +seller +route GET \/weather, amount 0.001 USDT0, .*\n.* reserved /,
    );
    expect(timeline.err).toContain("An offer leaves no row: its time is not known.\n");
    expect(timeline.out).toMatch(/submitted +relayer 0x/);
    expect(timeline.out).toMatch(/confirmed +chain eip155:/);
    expect((await json("payments", "timeline", id)).transactions[0].forms).toHaveLength(1);
    expect(await coinslot("payments", "timeline", "none")).toMatchObject({ code: exitCode.failed });
  });

  it("show the day, routes, buyers, chains and acts, without a stranger's control characters", async () => {
    const today = await coinslot("today");
    expect(today.out).toMatch(/income +0.001 USDT0/);
    expect(today.out).toMatch(
      /notice +payments_stopped +GET \/news .*docs\/operating.md#stop-selling/,
    );
    expect((await json("today")).source).toBe(engine === "sqlite" ? "seller" : "ledger");
    expect((await coinslot("routes")).out).toMatch(/GET \/weather +1 +0.001 USDT0/);
    for (const args of [["buyers"], ["buyers", "--all"]]) {
      const buyers = await coinslot(...args);
      expect(buyers.out).toContain(devnet.accounts.buyer.address.toLowerCase());
      expect(buyers.out).toMatch(/1 +0.001 USDT0/);
    }
    expect((await coinslot("chains")).out).toMatch(/eip155:\d+/);
    const acts = await coinslot("audit", "--operation", "stops");
    expect(acts.out).toMatch(/stops +- +done/);
    expect(await json("audit")).toMatchObject({
      entries: [
        { operation: "session.open", account: hostile, isRecorded: true },
        { operation: "stops", outcome: "done", argument: { target: { name: "GET /news" } } },
      ],
    });
    for (const args of [["audit"], ["audit", "--json"], ["audit", "--account", hostile]]) {
      const { out } = await coinslot(...args);
      expect(out).toContain("session.open");
      expect(isUnsafe(out)).toBe(false);
    }
  });
});

it("the operator's reads need a ledger", async () => {
  await inFolder(async (folder) => {
    for (const name of ["today", "routes", "buyers", "chains", "audit"]) {
      const env = { COINSLOT_LEDGER: `sqlite:${folder}/none.db` };
      const { code, err } = await runCoinslot([name], { env });
      expect({ name, code }).toEqual({ name, code: exitCode.usage });
      expect(err).toMatch(/The ledger does not exist yet/);
    }
  });
});
