import { type Clock, systemClock } from "@coinslot/chain";
import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const delaySeconds = 86_400;
/** The pace without traffic: a hundredth of the delay, and 5 minutes at most. */
const idleMs = 300_000;

describe("a seller without traffic, with unclaimed money", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let asked: string[];
  let aheadMs: number;
  /** Timers of a minute and more. They end as the test lets time pass. */
  let timers: Set<{ run: () => void; at: number; delayMs: number }>;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf({ withdrawDelay: delaySeconds });
    asked = [];
    aheadMs = 0;
    timers = new Set();
  });

  afterEach(() => here.stop());

  const clock: Clock = {
    now: () => performance.now() + aheadMs,
    setTimer(run, delayMs) {
      if (delayMs < 60_000) return systemClock.setTimer(run, delayMs);
      const timer = { run, at: clock.now() + delayMs, delayMs };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };

  async function start() {
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method }, ask) => {
      asked.push(method);
      return ask();
    });
    onTestFinished(proxy.close);
    return here.start(
      { withdrawDelaySeconds: delaySeconds },
      {
        network: { rpcUrls: [proxy.url] },
        clock,
        now: () => Date.now() + aheadMs,
      },
    );
  }

  /** Lets the time of processes and chain pass. */
  async function pass(ms: number) {
    aheadMs += ms;
    await here.devnet.client.increaseTime({ seconds: ms / 1_000 });
    await here.devnet.mine(1);
    for (const timer of [...timers]) {
      if (timer.at <= clock.now() && timers.delete(timer)) timer.run();
    }
  }

  /** Waits until the next look at the chain is that of an idle seller. */
  function idle() {
    return vi.waitFor(async () => {
      expect([...timers].map(({ delayMs }) => delayMs)).toContain(idleMs);
    }, patience);
  }

  it("asks its node at most 4 times a minute, and answers a withdrawal all the same", async () => {
    const facilitator = await start();
    await channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await here.metric(facilitator, "coinslot_channels_unclaimed")).toBe(Number(price));
    }, patience);
    await here.devnet.mine(5);
    await pass(61_000);
    await idle();
    asked.length = 0;
    const minutes = 30;
    for (let passed = 0; passed < minutes; passed += 5) {
      await pass(idleMs);
      await idle();
    }
    expect(await here.metric(facilitator, "coinslot_channels_unclaimed")).toBe(Number(price));
    expect(asked.filter((method) => method === "eth_getLogs").length).toBeGreaterThan(4);
    expect(asked.length).toBeLessThanOrEqual(4 * minutes);
    await channels.withdraw(config, 10_000n);
    const { initiatedAt } = await channels.stateOf(config);
    await pass(idleMs);
    await here.claimed(price, config);
    const { timestamp } = await here.devnet.client.getBlock();
    expect(Number(timestamp) - initiatedAt).toBeLessThan(delaySeconds / 100);
    expect(await here.lost(facilitator)).toBe(0);
  });
});
