import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelSettlementAbi } from "@coinslot/protocol";
import pino from "pino";
import { encodeFunctionData, keccak256, toEventSelector, toHex } from "viem";
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFailed,
  onTestFinished,
  vi,
} from "vitest";
import * as z from "zod";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const abi = channelSettlementAbi;
const settledTopic = abi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
)[0];
const rangeSchema = z.looseObject({
  fromBlock: z.string(),
  toBlock: z.string(),
  topics: z.unknown(),
});
const headerSchema = z.object({ result: z.looseObject({ number: z.string() }) });
/** No server listens there. */
const deadUrl = "http://127.0.0.1:1";
const logsSchema = z.object({ result: z.array(z.looseObject({ blockNumber: z.string() })) });

/**
 * Lies about payouts: each is shown in the last block that is asked for, as soon as there is one;
 * none is shown; or another one is.
 */
type Lie = "early" | "hidden" | "made up" | undefined;

describe.each(enginesByDay("sqlite"))("payouts of nodes with faults, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let lie: Lie;
  let lies: number;
  let nodeUrl: string;
  let prunedBelow: bigint;
  let aheadMs: number;
  let lines: string[];

  beforeEach(async () => {
    lie = undefined;
    lies = 0;
    prunedBelow = 0n;
    aheadMs = 0;
    lines = [];
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
    await channels.deposit(config, 10_000n);
    nodeUrl = await startNode();
    onTestFailed(() => void process.stderr.write(lines.join("")));
  });

  afterEach(() => here.stop());

  /** A node that may lie, and may have pruned its logs. */
  async function startNode(): Promise<string> {
    const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
      if (!JSON.stringify(call.params).includes(`${settledTopic}`)) return ask();
      if (BigInt(rangeSchema.parse(call.params[0]).fromBlock) < prunedBelow) {
        return { error: { code: 4444, message: "pruned history unavailable" } };
      }
      if (lie === undefined) return ask();
      lies += 1;
      return showPayouts(lie, call);
    });
    onTestFinished(node.close);
    return node.url;
  }

  async function showPayouts(shown: Lie, { method, params }: NodeCall): Promise<NodeAnswer> {
    if (shown === "hidden") return { result: [] };
    const { client } = here.devnet;
    const filter = rangeSchema.parse(params[0]);
    const asked = [{ ...filter, toBlock: toHex(await client.getBlockNumber()) }];
    const result = await client.request({ method, params: asked } as never);
    const logs = logsSchema.parse({ result }).result;
    const early = logs.map((log) => ({ ...log, blockNumber: filter.toBlock }));
    if (shown === "early") return { result: early };
    return {
      result: [...logs, ...early.map((log) => ({ ...log, transactionHash: keccak256("0x") }))],
    };
  }

  /** Logs go into `lines`. */
  const start = (...rpcUrls: string[]) =>
    here.start(
      {},
      {
        logger: pino({ level: "debug" }, { write: (line) => void lines.push(line) }),
        network: { rpcUrls },
        clock: { ...systemClock, now: () => performance.now() + aheadMs },
      },
    );

  /** A channel is claimed, and its receiver has the money. No process runs then. */
  async function settleOther() {
    const facilitator = await start(here.devnet.rpcUrl);
    const other = channels.configOf();
    await channels.deposit(other, 10_000n);
    await here.buyOnce(facilitator, price, config);
    await here.buyOnce(facilitator, price, other);
    await channels.withdraw(other, 10_000n);
    await here.claimed(price, other);
    await facilitator.close();
    await settle();
  }

  async function settle() {
    const args = [config.receiver, config.token] as const;
    const data = encodeFunctionData({ abi, functionName: "settle", args });
    await here.sendFirst(here.devnet.accounts.seller, data);
  }

  async function readLedger() {
    const { url } = here.ledger;
    const { database, close } = await openLedger({ url, processId: "reader", readOnly: true });
    const payouts = await database.kysely.selectFrom("channel_payouts").select("id").execute();
    const progress = await database.kysely
      .selectFrom("channel_payout_progress")
      .select("block_number")
      .executeTakeFirst();
    await close();
    return { payouts: payouts.length, progress: progress?.block_number };
  }

  const countPayouts = async () => (await readLedger()).payouts;

  /** A node whose head is called too high or low by some blocks. */
  async function startShifted(by: bigint) {
    const node = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      const answer = await ask();
      if (method !== "eth_getBlockByNumber" || params[0] !== "latest") return answer;
      const header = headerSchema.parse(answer);
      return { result: { ...header.result, number: toHex(BigInt(header.result.number) + by) } };
    });
    onTestFinished(node.close);
    return node;
  }

  /** Mines until one is posted. A look goes with each minute. */
  const posted = ({ everyMs = 0 } = {}) =>
    vi.waitFor(async () => {
      aheadMs += everyMs;
      await here.devnet.mine(1);
      expect(await countPayouts()).toBe(1);
    }, patience);

  const logged = (words: string) =>
    vi.waitFor(() => expect(lines.join("")).toContain(words), patience);

  it("stop no claim after one was shown in an earlier block", async () => {
    await settleOther();
    lie = "early";
    const misled = await start(nodeUrl);
    await vi.waitFor(async () => expect(await countPayouts()).toBe(1), patience);
    await misled.close();
    lie = undefined;
    await here.devnet.mine(5);
    await start(nodeUrl);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await posted();
  });

  it("are posted of a claim before which an endpoint was away from the first start on", async () => {
    const { devnet } = here;
    const first = await start(nodeUrl, deadUrl);
    await here.buyOnce(first, price, config);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await first.close();
    await settle();
    await devnet.mine(5);
    await start(nodeUrl, devnet.rpcUrl);
    await posted();
  });

  it("are reported as waiting while the heads of new endpoints are far apart", async () => {
    await start(here.devnet.rpcUrl, (await startShifted(-3n)).url);
    await logged("heads are far apart");
  });

  it("are not read anew where the head of a node is low for a moment", async () => {
    const first = await start(nodeUrl);
    await here.devnet.mine(50);
    const final = Number(await here.devnet.client.getBlockNumber()) - 2;
    await vi.waitFor(async () => {
      aheadMs += 61_000;
      expect((await readLedger()).progress).toBe(final);
    }, patience);
    await first.close();
    await start(nodeUrl, (await startShifted(-30n)).url);
    await vi.waitFor(async () => {
      const { progress } = await readLedger();
      if (progress === final) expect(lines.join("")).toContain("heads are far apart");
    }, patience);
    expect((await readLedger()).progress).toBe(final);
  });

  it("stop no claim where they cannot be posted", async () => {
    const first = await start(nodeUrl);
    await here.buyOnce(first, price, config);
    await first.close();
    const { database, close } = await openLedger({ url: here.ledger.url, processId: "fault" });
    await database.kysely.schema.dropTable("channel_payout_progress").execute();
    await close();
    await start(nodeUrl);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
  });

  it("are posted once all nodes show them, and none that one alone shows", async () => {
    await settleOther();
    await here.devnet.mine(5);
    for (const shown of ["hidden", "made up"] as const) {
      lie = shown;
      const before = lies;
      const misled = await start(nodeUrl, here.devnet.rpcUrl);
      await vi.waitFor(() => expect(lies).toBeGreaterThan(before), patience);
      await misled.close();
    }
    lie = undefined;
    expect(await countPayouts()).toBe(0);
    await start(nodeUrl, here.devnet.rpcUrl);
    await posted();
  });

  it("are posted of a chain that was lower than its final depth at first", async () => {
    const network = { rpcUrls: [nodeUrl], finalAfter: 40 };
    const facilitator = await here.start({}, { network });
    await here.buyOnce(facilitator, price, config);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await settle();
    await here.devnet.mine(41);
    await facilitator.close();
    await here.start({}, { network });
    await posted();
  });

  it.each([
    ["has called its head far too high", 1_000_000, 0n],
    // It is found before the chain comes there.
    ["calls its head too high for ever", 60, 60n],
  ])("are posted where a node %s", async (_, ahead, still) => {
    const { devnet } = here;
    await settleOther();
    await devnet.mine(5);
    const { database, close } = await openLedger({ url: here.ledger.url, processId: "fault" });
    const begun = { block_number: Number(await devnet.client.getBlockNumber()) + ahead };
    await database.kysely.updateTable("channel_payout_progress").set(begun).execute();
    await close();
    await start(nodeUrl, (await startShifted(still)).url);
    await posted({ everyMs: 61_000 });
  });

  it.each([1, 2])("wait while none of %s nodes has the logs of older blocks", async (nodes) => {
    await settleOther();
    await here.devnet.mine(5);
    prunedBelow = await here.devnet.client.getBlockNumber();
    const before = (await readLedger()).progress;
    await start(...[nodeUrl, await startNode()].slice(0, nodes));
    const reports = () => lines.filter((line) => line.includes("add a node that has them")).length;
    const begun = aheadMs;
    const reported = (times: number) =>
      vi.waitFor(async () => {
        aheadMs += 61_000;
        await here.devnet.mine(1);
        expect(reports()).toBe(times);
      }, patience);
    await reported(1);
    expect(aheadMs - begun).toBeGreaterThan(600_000);
    const first = aheadMs;
    await reported(2);
    expect(aheadMs - first).toBeGreaterThan(3_500_000);
    expect(await readLedger()).toEqual({ payouts: 0, progress: before });
    prunedBelow = 0n;
    await posted({ everyMs: 61_000 });
  });
});
