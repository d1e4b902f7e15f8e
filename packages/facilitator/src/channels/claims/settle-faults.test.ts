import { systemClock } from "@coinslot/chain";
import type { ChannelConfig } from "@coinslot/protocol";
import pino from "pino";
import { toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { type NodeAnswer, startNodeProxy } from "../../testing/node-proxy.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

const settleCall = toFunctionSelector("settle(address,address)");
const revert: NodeAnswer = { error: { code: 3, message: "execution reverted", data: "0x" } };
const fault: NodeAnswer = { error: { code: -32_000, message: "header not found" } };

describe.each(enginesByDay("sqlite"))("settles of nodes with faults, on %s", (engine) => {
  let here: ClaimingDevnet;
  let config: ChannelConfig;
  let paidBefore: bigint;
  let aheadMs: number;
  let lines: string[];

  beforeEach(async () => {
    aheadMs = 0;
    lines = [];
    here = await startClaimingDevnet(engine);
    config = here.channels.configOf();
    paidBefore = await here.balanceOf(config.receiver);
    const facilitator = await start(here.devnet.rpcUrl);
    await here.channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    await here.channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    await facilitator.close();
    await here.devnet.mine(4);
  });

  afterEach(() => here.stop());

  const start = (...rpcUrls: string[]) =>
    here.start(
      {},
      {
        logger: pino({ level: "debug" }, { write: (line) => void lines.push(line) }),
        network: { rpcUrls },
        clock: {
          now: () => performance.now() + aheadMs,
          // A look at a quiet chain each 9 seconds, a hundredth of the delay.
          setTimer: (run, ms) => systemClock.setTimer(run, ms === 9_000 ? 50 : ms),
        },
      },
    );

  /** A node with an answer of its own to trials of settles, and their number. */
  async function startNode(answer: () => NodeAnswer | undefined) {
    let trials = 0;
    const node = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      if (method !== "eth_call" || !JSON.stringify(params).includes(settleCall)) return ask();
      trials += 1;
      return answer() ?? ask();
    });
    onTestFinished(node.close);
    return { url: node.url, trials: () => trials };
  }

  /** A look goes with each minute. */
  async function passMinutes(count: number, trials: () => number) {
    for (let minutes = 0; minutes < count; minutes += 1) {
      const before = trials();
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        expect(trials()).toBeGreaterThan(before);
      }, patience);
      aheadMs += 61_000;
    }
  }

  const paid = () =>
    vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.balanceOf(config.receiver)).toBe(paidBefore + price);
    }, patience);

  it("are sent where one node alone reverts their trial", async () => {
    const liar = await startNode(() => revert);
    await start(liar.url, here.devnet.rpcUrl);
    await paid();
  });

  it("do not rest while a node that may pass their trial does not answer", async () => {
    let answer: NodeAnswer | undefined = fault;
    const liar = await startNode(() => revert);
    const other = await startNode(() => answer);
    await start(liar.url, other.url);
    await passMinutes(8, other.trials);
    answer = undefined;
    await passMinutes(1, other.trials);
    await paid();
  });

  it("rest where the node that answers refuses them, and another is silent for ten minutes", async () => {
    const honest = await startNode(() => revert);
    await start(honest.url, "http://127.0.0.1:1");
    const refused = () => lines.join("").includes("the token refuses the transfer");
    await passMinutes(8, honest.trials);
    expect(refused()).toBe(false);
    let looks = honest.trials();
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      // Minutes without a look would begin the silence anew.
      if (honest.trials() > looks) aheadMs += 61_000;
      looks = honest.trials();
      expect(refused()).toBe(true);
    }, patience);
  });
});
