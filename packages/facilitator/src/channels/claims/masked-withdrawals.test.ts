import { setTimeout as pause } from "node:timers/promises";
import { type ChannelConfig, channelContracts, channelSettlementAbi } from "@coinslot/protocol";
import { decodeFunctionData, isHex } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { lieAboutChannels, type ShownChannel } from "../../testing/lying-escrow.ts";
import { type NodeCall, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { hastyClock } from "../../testing/silent-node.ts";

const callSchema = z.object({ to: z.string(), data: z.custom<`0x${string}`>(isHex) });
const delaySeconds = 900;

describe("a withdrawal behind two nodes", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let lie: Partial<ShownChannel> | undefined;
  let aheadMs: number;
  let isSlow: boolean;
  let isRefusing: boolean;
  let slowCalls: number;
  /** The first node answers no question about events until then. */
  let held: Promise<void> | undefined;
  let release: () => void;
  let nodes: NodeProxy[];
  let facilitator: CoinslotFacilitator;

  beforeEach(async () => {
    lie = undefined;
    aheadMs = 0;
    isSlow = false;
    isRefusing = false;
    slowCalls = 0;
    held = undefined;
    release = () => undefined;
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
    const { rpcUrl } = here.devnet;
    nodes = [
      await startNodeProxy(rpcUrl, async (call, ask) => {
        if (call.method === "eth_getLogs") await held;
        if (isRefusing && isTrialOfClaim(call)) {
          return { error: { code: 3, message: "execution reverted", data: "0x12345678" } };
        }
        return lieAboutChannels(call, ask, lie);
      }),
      await startNodeProxy(rpcUrl, async ({ method, params }, ask) => {
        if (isSlow && method === "eth_call" && typeof params[1] === "object") {
          // Of the second that it has for a look, with `hastyClock`.
          await pause(600);
          slowCalls += 1;
        }
        return ask();
      }),
    ];
    await channels.deposit(config, 10_000n);
    facilitator = await here.start(
      {},
      {
        network: { rpcUrls: nodes.map(({ url }) => url) },
        clock: { setTimer, now: () => performance.now() + aheadMs },
        now: () => Date.now() + aheadMs,
      },
    );
    await here.buyOnce(facilitator, price, config);
  });

  afterEach(async () => {
    release();
    await here.stop();
    await Promise.all(nodes.map((node) => node.close()));
  });

  /** A node may take its time for a request while it is held. */
  function setTimer(run: () => void, ms: number) {
    return hastyClock.setTimer(run, held !== undefined && ms === 10_000 ? 600_000 : ms);
  }

  function isTrialOfClaim({ method, params }: NodeCall): boolean {
    const call = callSchema.safeParse(params[0]).data;
    if (
      method !== "eth_call" ||
      call?.to.toLowerCase() !== channelContracts.settlement.toLowerCase()
    )
      return false;
    return (
      decodeFunctionData({ abi: channelSettlementAbi, data: call.data }).functionName === "claim"
    );
  }

  /** Lets the time of processes and chain pass, until the watcher has seen the next block. */
  async function pass(seconds: number) {
    aheadMs += seconds * 1_000;
    await here.devnet.client.increaseTime({ seconds });
    const until = (await here.devnet.client.getBlockNumber()) + 1n;
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      const block = await here.metric(facilitator, "coinslot_channels_watched_block");
      expect(block).toBeGreaterThanOrEqual(Number(until));
    }, patience);
  }

  /** Passes the delay in small steps. Returns the seconds after which all was claimed. */
  async function claimedAfter(): Promise<number | undefined> {
    for (let passed = 0; passed < delaySeconds - 30; passed += 60) {
      if ((await channels.stateOf(config)).totalClaimed === price) return passed;
      await pass(60);
    }
    return undefined;
  }

  it.each<[string, Partial<ShownChannel>]>([
    ["another date", { withdrawal: { amount: 10_000n, initiatedAt: 2 ** 40 - 1 } }],
    [
      "no money left",
      { balance: 0n, totalClaimed: 0n, withdrawal: { amount: 10_000n, initiatedAt: 2 ** 40 - 1 } },
    ],
  ])("is answered where the first one refuses claims, and shows %s", async (_, shown) => {
    lie = shown;
    isRefusing = true;
    await channels.withdraw(config, 10_000n);
    expect(await claimedAfter()).toBeDefined();
  });

  it("is answered where the first one shows it as claimed, and the other is slow among many", async () => {
    // More than one part of a look.
    const others = Array.from({ length: 110 }, () => channels.configOf());
    await here.depositAll(others, 10_000n);
    for (const ceiling of [price, 2n * price]) {
      await Promise.all(others.map((other) => here.buyOnce(facilitator, ceiling, other)));
    }
    lie = { totalClaimed: price, withdrawal: undefined };
    isSlow = true;
    await channels.withdraw(config, 10_000n);
    for (let passed = 0; passed < delaySeconds - 30; passed += 60) {
      const before = slowCalls;
      await pass(60);
      await vi.waitFor(() => expect(slowCalls).toBeGreaterThan(before), patience);
      if ((await channels.stateOf(config)).totalClaimed === price) break;
    }
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: price });
  });

  it("is answered where the first one hides it, and holds up a round of the watch", async () => {
    lie = { withdrawal: undefined };
    await channels.withdraw(config, 10_000n);
    held = new Promise((resolve) => {
      release = resolve;
    });
    await vi.waitFor(async () => {
      aheadMs += 2_000;
      await here.devnet.client.increaseTime({ seconds: 2 });
      await here.devnet.mine(1);
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: price });
    }, patience);
    // The round is not over, and a stop ends it.
    await facilitator.close();
  });
});
