import { type ChannelConfig, channelSettlementAbi } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, startNodeProxy } from "../../testing/node-proxy.ts";

const claimSelector = selectorOf("claim");

function selectorOf(name: string): string {
  const found = channelSettlementAbi.find((item) => item.type === "function" && item.name === name);
  if (found?.type !== "function") throw new Error(name);
  return toFunctionSelector(found);
}

describe("a claim of many channels", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let configs: ChannelConfig[];

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    configs = [];
  });

  afterEach(() => here.stop());

  /** Opens channels, with a deposit on each. */
  async function open(count: number) {
    configs = Array.from({ length: count }, () => channels.configOf());
    await here.depositAll(configs, 10_000n);
    return configs;
  }

  /** A node that answers the trial of one channel's row otherwise. */
  async function startNode(salt: () => string | undefined, answer: NodeAnswer) {
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      const words = JSON.stringify(params);
      const wrong = salt()?.slice(2);
      const isTrial = method === "eth_call" && words.includes(`"${claimSelector}`);
      return isTrial && wrong !== undefined && words.includes(wrong) ? answer : ask();
    });
    onTestFinished(proxy.close);
    return { network: { rpcUrls: [proxy.url] } };
  }

  it("answers 99 of 100 withdrawals of one block at once, and the one that a node refuses in time", async () => {
    let refused: string | undefined;
    const answer = { error: { code: 3, message: "execution reverted" } };
    const facilitator = await here.start({}, await startNode(() => refused, answer));
    const [bad, ...good] = await open(100);
    if (bad === undefined) throw new Error("No channel.");
    const sold = configs.map((each) => here.buyOnce(facilitator, price, each));
    expect(new Set(await Promise.all(sold))).toEqual(new Set([true]));
    refused = bad.salt;
    const { blockNumber } = await here.withdrawAll(configs, 10_000n);
    await here.claimed(price, good[0] ?? bad);
    for (const each of good) {
      expect(await channels.stateOf(each)).toMatchObject({ totalClaimed: price });
    }
    expect((await here.claimsSince(blockNumber)).map(({ length }) => length)).toEqual([99]);
    expect(await channels.stateOf(bad)).toMatchObject({ totalClaimed: 0n });
    await here.devnet.client.increaseTime({ seconds: 310 });
    await here.claimed(price, bad);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("is sent in time for a row that a node behind its last deposit refuses", async () => {
    let refused: string | undefined;
    // ClaimExceedsBalance()
    const answer = { error: { code: 3, message: "execution reverted", data: "0x7d8242b6" } };
    const facilitator = await here.start({}, await startNode(() => refused, answer));
    const [config] = await open(1);
    if (config === undefined) throw new Error("No channel.");
    await here.buyOnce(facilitator, price, config);
    refused = config.salt;
    await here.withdrawAll([config], 10_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const claims = await here.metric(facilitator, "coinslot_channel_claims_total");
      expect(claims).toBeGreaterThanOrEqual(1);
    }, patience);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });
    await here.devnet.client.increaseTime({ seconds: 310 });
    await here.claimed(price, config);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("leaves out a row that no node has an answer about, and pays the others", async () => {
    let silent: string | undefined;
    const answer = { error: { code: -32603, message: "internal error" } };
    const facilitator = await here.start({}, await startNode(() => silent, answer));
    const [bad, ...good] = await open(3);
    for (const each of configs) await here.buyOnce(facilitator, price, each);
    silent = bad?.salt;
    await here.withdrawAll(configs, 10_000n);
    for (const each of good) await here.claimed(price, each);
    silent = undefined;
    if (bad !== undefined) await here.claimed(price, bad);
  });

  it("is halved after a revert, and ends without the row that caused it", async () => {
    const facilitator = await here.start({ mostAtRisk: 11_000n, claimCost: 100n });
    const { number } = await here.devnet.client.getBlock();
    const [bad, ...good] = await open(7);
    if (bad === undefined) throw new Error("No channel.");
    await here.devnet.mine(3);
    for (const each of configs.slice(0, 5)) await here.buyOnce(facilitator, price, each);
    await here.devnet.setAutomine(false);
    for (const each of configs.slice(5)) await here.buyOnce(facilitator, price, each);
    await vi.waitFor(async () => {
      const pool = await here.devnet.client.getTxpoolStatus();
      expect(pool.pending).toBe(1);
    }, patience);
    // Mined before the claim: the seller gives one channel's money back by itself.
    await here.refundFirst(bad, 10_000n);
    for (const each of good) await here.claimed(price, each);
    const sizes = (await here.claimsSince(number)).map(({ length }) => length);
    expect(sizes).toEqual([3, 3]);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.lost(facilitator)).toBe(Number(price));
    }, patience);
  });

  it("has each row whose delay is over alone: no payer can revert its neighbours", async () => {
    const first = await here.start();
    await open(4);
    const { number } = await here.devnet.client.getBlock();
    const [hostile, ...honest] = configs;
    if (hostile === undefined) throw new Error("No channel.");
    for (const each of configs) await here.buyOnce(first, price, each);
    await first.close();
    await here.withdrawAll(configs, 10_000n);
    await here.devnet.client.increaseTime({ seconds: 901 });
    await here.devnet.mine(1);
    await here.devnet.setAutomine(false);
    const second = await here.start({ claimCost: 100n });
    await vi.waitFor(async () => {
      const pool = await here.devnet.client.getTxpoolStatus();
      expect(pool.pending).toBe(4);
    }, patience);
    await here.finishFirst(hostile);
    await here.devnet.mine(1);
    // In that very block: the hostile payer has its own row back, and no other.
    for (const each of honest) {
      expect(await channels.stateOf(each)).toMatchObject({ totalClaimed: price });
    }
    expect(await here.claimsSince(number)).toHaveLength(3);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.lost(second)).toBe(Number(price));
    }, patience);
  });
});
