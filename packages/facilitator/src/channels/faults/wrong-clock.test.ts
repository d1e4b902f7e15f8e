import { systemClock } from "@coinslot/chain";
import type { ChannelConfig } from "@coinslot/protocol";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const hourMs = 3_600_000;

describe("a clock that is set back and forth", () => {
  let here: ClaimingDevnet;
  let channels: ClaimingDevnet["channels"];
  let config: ChannelConfig;
  /** Of the system's date. */
  let wallMs: number;
  /** Of the time that passes. */
  let passedMs: number;
  let intercept: Parameters<typeof startNodeProxy>[1];

  beforeEach(async () => {
    here = await startClaimingDevnet("sqlite");
    channels = here.channels;
    config = channels.configOf();
    [wallMs, passedMs] = [0, 0];
    intercept = async (_call, ask) => ask();
  });

  afterEach(() => here.stop());

  async function start(options: Parameters<ClaimingDevnet["start"]>[0] = {}) {
    const proxy = await startNodeProxy(here.devnet.rpcUrl, (call, ask) => intercept(call, ask));
    onTestFinished(proxy.close);
    return here.start(options, {
      network: { rpcUrls: [proxy.url] },
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      now: () => Date.now() + wallMs,
    });
  }

  it("keeps no process from selling that starts after the watcher wrote a later time", async () => {
    const first = await start();
    await channels.deposit(config, 10_000n);
    await here.buyOnce(first, price, config);
    await first.close();
    const { database, close } = await openLedger({ url: here.ledger.url, processId: "other" });
    await sql`update channel_watches set seen_at = seen_at + ${hourMs}`.execute(database.kysely);
    await close();
    const second = await start();
    expect(await here.buyOnce(second, 2n * price, config)).toBe(true);
  });

  it("sells nothing in the last tenth of a delay, by the chain's clock", async () => {
    const facilitator = await start();
    await channels.deposit(config, 20_000n);
    await here.buyOnce(facilitator, price, config);
    wallMs = -hourMs;
    await channels.withdraw(config, 10_000n);
    await here.claimed(price, config);
    expect(await here.buyOnce(facilitator, 2n * price, config)).toBe(true);
    await here.devnet.client.increaseTime({ seconds: 860 });
    await here.devnet.mine(1);
    await vi.waitFor(async () => {
      const { number } = await here.devnet.client.getBlock();
      const watched = await here.metric(facilitator, "coinslot_channels_watched_block");
      expect(watched).toBe(Number(number));
    }, patience);
    // The watcher's row is read again after a second.
    passedMs = 2_000;
    expect(await here.buyOnce(facilitator, 3n * price, config)).toBe(false);
  });

  it("gives no credit while the chain is not followed", async () => {
    const facilitator = await start();
    await channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    intercept = async () => undefined;
    wallMs = -hourMs;
    passedMs = 230_000;
    expect(await here.ask(facilitator, 2n * price, config)).toMatchObject({ state: "busy" });
  });

  it("lets no refused row of a claim rest beyond its time", async () => {
    const facilitator = await start();
    await channels.deposit(config, 10_000n);
    await here.buyOnce(facilitator, price, config);
    let refusals = 0;
    wallMs = hourMs;
    intercept = async ({ method, params }, ask) => {
      const isClaim = JSON.stringify(params).includes(config.salt.slice(2));
      if (method !== "eth_call" || !isClaim) return ask();
      refusals += 1;
      return { error: { code: 3, message: "execution reverted" } };
    };
    await channels.withdraw(config, 10_000n);
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(refusals).toBeGreaterThan(0);
    }, patience);
    wallMs = 0;
    intercept = async (_call, ask) => ask();
    await here.claimed(price, config);
  });

  it("claims a charge that a later date has, and holds none back for it", async () => {
    wallMs = 200_000;
    const facilitator = await start({ claimAfterSeconds: 300 });
    await channels.deposit(config, 10_000n);
    const admission = await here.admit(facilitator, price, config);
    if (admission.state !== "admitted") throw new Error(admission.state);
    // Its handler goes on, and may lower it.
    expect(await admission.run.charge({ amount: price })).toMatchObject({ state: "charged" });
    wallMs = -hourMs;
    await here.claimed(price, config);
  });
});
