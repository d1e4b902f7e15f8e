import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelSettlementAbi } from "@coinslot/protocol";
import pino from "pino";
import { encodeFunctionData, toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const abi = channelSettlementAbi;
const receiversSelector = toFunctionSelector("receivers(address,address)");

describe.each(enginesByDay("sqlite"))("where gas costs nothing, on %s", (engine) => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let aheadMs: number;
  let calls: string[];
  let nodeUrl: string;
  let lines: string[];

  beforeEach(async () => {
    aheadMs = 0;
    calls = [];
    lines = [];
    here = await startClaimingDevnet(engine);
    channels = here.channels;
    config = channels.configOf();
    await channels.deposit(config, 10_000n);
    const node = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      if (method === "eth_call") calls.push(JSON.stringify(params));
      return ask();
    });
    onTestFinished(node.close);
    nodeUrl = node.url;
  });

  afterEach(() => here.stop());

  const start = (...rpcUrls: string[]) =>
    here.start(
      { claimCost: 0n },
      {
        network: { rpcUrls },
        clock: { ...systemClock, now: () => performance.now() + aheadMs },
        logger: pino({ level: "warn" }, { write: (line) => void lines.push(line) }),
      },
    );

  async function countSettles() {
    const { url } = here.ledger;
    const { database, close } = await openLedger({ url, processId: "reader", readOnly: true });
    const rows = await database.kysely.selectFrom("channel_settles").select("amount").execute();
    await close();
    return rows.length;
  }

  it("no settle is sent of nothing", async () => {
    const first = await here.start();
    await here.buyOnce(first, price, config);
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await first.close();
    const args = [config.receiver, config.token] as const;
    const data = encodeFunctionData({ abi, functionName: "settle", args });
    await here.sendFirst(here.devnet.accounts.seller, data);
    await here.devnet.mine(5);
    await start(nodeUrl);
    const looks = () => calls.filter((call) => call.includes(receiversSelector)).length;
    await vi.waitFor(async () => {
      aheadMs += 61_000;
      if ((await countSettles()) === 0) expect(looks()).toBeGreaterThan(1);
    }, patience);
    expect(await countSettles()).toBe(0);
  });

  it("no withdrawal is seen where none is", async () => {
    const facilitator = await start(here.devnet.rpcUrl, nodeUrl);
    await here.buyOnce(facilitator, price, config);
    for (let count = 0; count < 3; count += 1) {
      aheadMs += 46_000;
      const before = calls.length;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(calls.length).toBeGreaterThan(before);
      }, patience);
    }
    expect(lines.join("")).not.toContain("endpoints differ about a withdrawal");
  });
});
