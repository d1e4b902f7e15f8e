import { systemClock } from "@coinslot/chain";
import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type ClaimingDevnet, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

describe("a node that hides the escrow's events", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  let isHiding: boolean;
  let aheadMs: number;

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
    isHiding = false;
    aheadMs = 0;
  });

  afterEach(() => here.stop());

  async function start(options: Parameters<ClaimingDevnet["start"]>[0] = {}) {
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method }, ask) =>
      isHiding && method === "eth_getLogs" ? { result: [] } : ask(),
    );
    onTestFinished(proxy.close);
    const performanceMs = () => performance.now() + aheadMs;
    return here.start(
      { mostAtRisk: 5_000n, ...options },
      {
        network: { rpcUrls: [proxy.url] },
        clock: { ...systemClock, now: performanceMs },
        now: () => Date.now() + aheadMs,
      },
    );
  }

  /** Lets the time of processes and chain pass. */
  async function pass(seconds: number) {
    aheadMs += seconds * 1_000;
    await here.devnet.client.increaseTime({ seconds });
    await here.devnet.mine(1);
  }

  it("hides a withdrawal for a twentieth of its delay, and it is answered in time", async () => {
    const facilitator = await start();
    await channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    isHiding = true;
    await channels.withdraw(config, 10_000n);
    await pass(46);
    await here.claimed(price, config);
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("sells nothing on a channel that was emptied while nothing of it was unclaimed", async () => {
    const facilitator = await start();
    await channels.deposit(config, 20_000n);
    await here.buy(facilitator, 6_000n, config);
    await here.claimed(6_000n, config);
    await here.drained(facilitator);
    await here.devnet.mine(4);
    isHiding = true;
    await channels.withdraw(config, 14_000n);
    await pass(901);
    await channels.finish(config);
    expect(await here.admit(facilitator, 8_000n, config)).toMatchObject({ state: "refused" });
    expect(await here.lost(facilitator)).toBe(0);
  });

  it("sells nothing on a channel that was emptied while too little for a claim was unclaimed", async () => {
    const facilitator = await start({ claimCost: 4_000n, claimAfterSeconds: 60 });
    await channels.deposit(config, 20_000n);
    await here.devnet.mine(5);
    await here.buyOnce(facilitator, price, config);
    isHiding = true;
    await pass(61);
    await channels.withdraw(config, 20_000n);
    await pass(901);
    await channels.finish(config);
    expect(await here.admit(facilitator, 2n * price, config)).toMatchObject({ state: "refused" });
  });
});
