import { describe, expect, it } from "vitest";
import { createTopUp, type FundsNeed, type TopUpOptions, type TopUpProposal } from "./index.ts";
import { contractOf, funds, usdt, usdt0, useBridgeWorld } from "./testing/bridge-world.ts";
import { expectBridgeError } from "./testing/expect-bridge-error.ts";

const world = useBridgeWorld();

function needOf(change: Partial<FundsNeed> = {}): FundsNeed {
  return { network: "eip155:9745", asset: usdt0, amount: 1_000_000n, balance: 0n, ...change };
}

function create(change: Partial<TopUpOptions> = {}) {
  const { buyer, createBridge } = world();
  const proposals: TopUpProposal[] = [];
  const topUp = createTopUp({
    bridge: createBridge(),
    token: usdt,
    ask(proposal) {
      proposals.push(proposal);
      return true;
    },
    pollIntervalMs: 10,
    // Messages are carried as soon as they are sent.
    async onProgress({ state }) {
      if (state === "sent") await world().layerZero.deliver();
    },
    ...change,
  });
  const ask = (...needs: FundsNeed[]) => topUp({ payer: buyer, needs, signal: undefined });
  return { ask, proposals };
}

describe("a top-up", () => {
  it("brings what is missing, and waits until it is there", async () => {
    const { plasma, buyer, balanceOf } = world();
    await plasma.mint({ to: buyer, amount: 300_000n });
    const { ask, proposals } = create();
    expect(await ask(needOf({ balance: 300_000n }))).toBe(true);
    const balance = await balanceOf(plasma, usdt0, buyer);
    // And no more than a thousandth beyond it.
    expect(balance).toBeGreaterThanOrEqual(1_000_000n);
    expect(balance).toBeLessThan(1_001_000n);
    expect(proposals).toMatchObject([
      { request: { targetChain: "plasma", recipient: buyer }, quote: { feeBasis: "estimate" } },
    ]);
  });

  it("brings enough also where the most that a bridge allows is lost on the way", async () => {
    const { ethereum, plasma, buyer, configure, balanceOf } = world();
    const oft = contractOf("ethereum", "oft");
    await configure(ethereum, oft, { functionName: "setFeeBps", args: [10n] });
    expect(await create().ask(needOf())).toBe(true);
    expect(await balanceOf(plasma, usdt0, buyer)).toBeGreaterThanOrEqual(1_000_000n);
  });

  it("brings more at once on demand", async () => {
    const { plasma, buyer, balanceOf } = world();
    expect(await create({ leastAmount: 20_000_000n }).ask(needOf())).toBe(true);
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(20_000_000n);
  });

  it("serves the first need that it can", async () => {
    const { ask, proposals } = create();
    const isThere = await ask(
      // Another token of the same chain, the chain it is on, and a chain that it does not know.
      needOf({ asset: usdt }),
      needOf({ network: "eip155:1", asset: usdt }),
      needOf({ network: "eip155:8453" }),
      needOf(),
    );
    expect(isThere).toBe(true);
    expect(proposals.map(({ need }) => need)).toEqual([needOf()]);
  });

  it("does nothing where it can serve none", async () => {
    const { ask, proposals } = create();
    expect(await ask(needOf({ network: "eip155:8453" }))).toBe(false);
    expect(proposals).toEqual([]);
    expect(await world().countSent()).toBe(0);
  });

  it("does nothing when whoever is asked declines", async () => {
    expect(await create({ ask: () => false }).ask(needOf())).toBe(false);
    expect(await world().countSent()).toBe(0);
  });

  it("says why it failed", async () => {
    const { ask } = create();
    await expectBridgeError(ask(needOf({ amount: funds * 2n })), "insufficient_balance");
    const late = create({ timeoutMs: 50, onProgress: () => undefined });
    await expectBridgeError(late.ask(needOf()), "delivery_timeout");
  });
});
