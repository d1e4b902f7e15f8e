import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createChannelFixture,
  createTestDatabase,
  type Devnet,
  placeChannels,
  startDevnet,
  testUsdt0,
  withDatabase,
} from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import { type ChannelConfig, toLowerHex } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const patience = { timeout: 90_000, interval: 100 };
const price = 2_000n;

const engines = byDay(["sqlite"], ["sqlite", "postgres"]);

describe.each(engines)("coinslot books of channels, on %s", (engine) => {
  let devnet: Devnet;
  let ledger: { url: string; drop(): Promise<void> };
  let channels: ReturnType<typeof createChannelFixture>;
  let running: CoinslotFacilitator | undefined;
  /** One that stays open, one whose payer withdraws, one whose money is lost. */
  let configs: [kept: ChannelConfig, withdrawn: ChannelConfig, lost: ChannelConfig];

  function books(...args: string[]) {
    const env = {
      COINSLOT_LEDGER: ledger.url,
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
    };
    return runCoinslot(["books", ...args], { env });
  }

  /**
   * @param mostAtRisk credit of a channel before it is claimed; the facilitator's default if left
   * out
   */
  async function start(mostAtRisk?: bigint): Promise<CoinslotFacilitator> {
    const { network, rpcUrl, accounts } = devnet;
    const { privateKey } = accounts.deployer;
    running = createFacilitator({
      networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer, finalAfter: 2 }],
      ledger: ledger.url,
      channels: { authorizer: { privateKey }, claimCost: 100n, mostAtRisk },
    });
    await running.ready();
    return running;
  }

  /** Starts a process that claims each charge at once. */
  async function restart(): Promise<void> {
    await running?.close();
    await start(1n);
  }

  async function buy(config: ChannelConfig, count: number, route = "GET /weather"): Promise<void> {
    const { network } = devnet;
    for (let bought = 0; bought < count; bought += 1) {
      const { totalClaimed } = await channels.stateOf(config);
      const before = charged.get(config) ?? totalClaimed;
      const ceiling = before + price;
      const signer = devnet.accounts.others.find(
        ({ address }) => toLowerHex(address) === config.payerAuthorizer,
      );
      const signature = await channels.signVoucher(config, ceiling, signer);
      const voucher = { channelId: channels.idOf(config), maxClaimableAmount: ceiling, signature };
      const admission = await vi.waitFor(async () => {
        const asked = await running?.channels?.admit({
          ...{ network, route, price, isSafe: true, isGone: () => false },
          presented: { channelConfig: config, voucher },
          fingerprint: `${route} ${ceiling}`,
        });
        if (asked?.state === "admitted") return asked;
        await devnet.mine(1);
        throw new Error(asked?.state);
      }, patience);
      const charge = await admission.run.charge({ amount: price });
      if (charge.state !== "charged") throw new Error("Not charged.");
      // Each second charge is lowered, as that of a stream that ended early.
      const amount = bought % 2 === 0 ? price : price - 500n;
      if (amount < price) expect(await charge.lower(amount)).toBe(true);
      charge.deliver();
      charged.set(config, before + amount);
    }
  }
  const charged = new Map<ChannelConfig, bigint>();

  const received = () =>
    devnet.client.readContract({
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "balanceOf",
      args: [devnet.accounts.seller.address],
    });

  /** Mines until the condition holds. */
  const mineUntil = (condition: () => Promise<void>) =>
    vi.waitFor(async () => {
      await devnet.mine(1);
      await condition();
    }, patience);

  beforeAll(async () => {
    devnet = await startDevnet({ accountCount: 5 });
    await placeChannels(devnet);
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
    if (engine === "postgres") ledger = await createTestDatabase();
    else {
      const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
      ledger = { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
    }
    channels = createChannelFixture(devnet);
    // A signer that owes for a loss buys nothing on its other channels.
    const payerAuthorizer = toLowerHex(devnet.accounts.others[0]?.address ?? "0x");
    configs = [channels.configOf(), channels.configOf(), channels.configOf({ payerAuthorizer })];
    await start();
    const [kept, withdrawn, lost] = configs;
    for (const config of configs) await channels.deposit(config, 20_000n);
    await buy(kept, 4);
    await buy(kept, 2, "GET /dear");
    await buy(withdrawn, 2);
    await buy(lost, 1);
    // The authorizer's key gives all of it back: nothing is left to claim.
    await channels.refund(lost, 20_000n);
    await restart();
    await channels.withdraw(withdrawn, 10_000n);
    await mineUntil(async () => {
      expect((await channels.stateOf(kept)).totalClaimed).toBe(charged.get(kept));
      expect((await channels.stateOf(withdrawn)).totalClaimed).toBe(charged.get(withdrawn));
    });
    // A reorganisation takes a claim away, and the next one brings it again.
    await devnet.reorg({ depth: 1 });
    await mineUntil(async () => {
      expect((await channels.stateOf(kept)).totalClaimed).toBe(charged.get(kept));
      expect((await channels.stateOf(withdrawn)).totalClaimed).toBe(charged.get(withdrawn));
    });
    await devnet.mine(3);
    // By anyone: a stranger sends the first part, the seller's own process the next one.
    const stranger = await received();
    await channels.settle();
    expect(await received()).toBeGreaterThan(stranger);
    await buy(kept, 3);
    await mineUntil(async () => {
      expect((await channels.stateOf(kept)).totalClaimed).toBe(charged.get(kept));
    });
    await devnet.mine(3);
    await restart();
    const due = (charged.get(kept) ?? 0n) + (charged.get(withdrawn) ?? 0n);
    await mineUntil(async () => expect(await received()).toBe(stranger + due));
    await devnet.mine(3);
    await restart();
    await mineUntil(async () => {
      const { out } = await books("show", "--json");
      expect(JSON.parse(out).balances).toContainEqual(
        expect.objectContaining({ account: "claimed", amount: "0" }),
      );
    });
  }, 240_000);

  afterAll(async () => {
    await running?.close();
    await devnet?.stop();
    await ledger?.drop();
  });

  it("find no difference with the chain, and print nothing", async () => {
    await vi.waitFor(async () => {
      const { code, out, err } = await books("check");
      expect({ code, out }).toEqual({ code: exitCode.done, out: "" });
      expect(err).toMatch(/^No difference\. \d+ rows compared; 2 final transfers found/);
    }, patience);
  });

  it("show what is owed, held and lost, and add up to zero", async () => {
    const { out } = await books("show", "--json");
    const rows: { account: string; currency: string; amount: string }[] = JSON.parse(out).balances;
    const tokens = rows.filter(({ account }) => account !== "gas" && account !== "relayers");
    const amounts = new Map(tokens.map(({ account, amount }) => [account, Number(amount)]));
    expect(Object.fromEntries(amounts)).toEqual({
      ...{ receivable: 0, claimed: 0, losses: 0.002, wallet: 0.0195 },
      ...{ income: -0.0215, locked: 0.0205, escrow: -0.0205 },
    });
    expect(rows.some(({ account }) => account === "gas")).toBe(true);
  });

  it("export income by route", async () => {
    const { out } = await books("export", "--by", "route");
    const charges = out.split("\r\n").filter((row) => row.includes("receivable,income"));
    expect(charges.map((row) => row.split(",").slice(0, 5)).sort()).toEqual([
      ["GET /dear", "charge", "receivable", "income", "0.004"],
      ["GET /weather", "charge", "receivable", "income", "0.02"],
    ]);
  });

  it.each([
    {
      name: "a payout without its entry",
      plant: ["delete from book_entries where debit = 1 and credit = 11"],
      found: /no entry/,
    },
    {
      name: "a payout that was not posted",
      plant: [
        "delete from book_entries where source_id = (select max(id) from channel_payouts)",
        "delete from channel_payouts where id = (select max(id) from channel_payouts)",
      ],
      found: /not posted/,
    },
    {
      name: "a charge that is not in the books",
      plant: ["delete from channel_sums where is_reversal = 1"],
      found: /wrong balance of a channel/,
    },
    {
      name: "a claim that is not in the books",
      plant: ["delete from book_entries where debit = 11"],
      found: /wrong balance of a channel/,
    },
  ])("name $name", async ({ plant, found }) => {
    const tables = ["book_entries", "channel_payouts", "channel_sums"];
    await running?.close();
    const execute = (statements: string[]) =>
      withDatabase(ledger.url, async (database) => {
        for (const statement of statements) await database.execute(statement);
      });
    await execute(tables.map((table) => `create table kept_${table} as select * from ${table}`));
    // Also for the depth of the chain's preset.
    await devnet.mine(100);
    try {
      await execute(plant);
      const { code, out } = await books("check");
      expect(code).toBe(exitCode.failed);
      expect(out).toMatch(found);
    } finally {
      const columns =
        "posted_at, route_id, pay_to_id, debit, credit, source_id, amount, network, asset, block_number";
      await execute([
        ...tables.map((table) => `delete from ${table}`),
        `insert into book_entries (${columns}) select ${columns} from kept_book_entries`,
        ...["channel_payouts", "channel_sums"].map(
          (table) => `insert into ${table} select * from kept_${table}`,
        ),
        ...tables.map((table) => `drop table kept_${table}`),
      ]);
    }
  });
});
