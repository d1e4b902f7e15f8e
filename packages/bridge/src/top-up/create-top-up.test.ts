import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import { createTopUp } from "../index.ts";
import { contractOf, funds, usdt, usdt0, useBridgeWorld, xaut } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { startRpcProxy } from "../testing/rpc-proxy.ts";
import { createTopUps, needOf } from "../testing/top-up-scene.ts";

const world = useBridgeWorld();

const create = createTopUps(world);

describe("a top-up", () => {
  it("brings the missing amount, and waits for its arrival", async () => {
    const { plasma, buyer, balanceOf } = world();
    await plasma.mint({ to: buyer, amount: 300_000n });
    const { ask, proposals } = create();
    expect(await ask(needOf({ balance: 300_000n }))).toBe(true);
    const balance = await balanceOf(plasma, usdt0, buyer);
    // At most a thousandth more.
    expect(balance).toBeGreaterThanOrEqual(1_000_000n);
    expect(balance).toBeLessThan(1_001_000n);
    expect(proposals).toMatchObject([
      { request: { targetChain: "plasma", recipient: buyer }, quote: { feeBasis: "estimate" } },
    ]);
  });

  it("brings enough even at a bridge's largest loss", async () => {
    const { ethereum, plasma, buyer, configure, balanceOf } = world();
    const oft = contractOf("ethereum", "oft");
    await configure(ethereum, oft, { functionName: "setFeeBps", args: [10n] });
    expect(await create().ask(needOf())).toBe(true);
    expect(await balanceOf(plasma, usdt0, buyer)).toBeGreaterThanOrEqual(1_000_000n);
  });

  it("brings more at once when configured so", async () => {
    const { plasma, buyer, balanceOf } = world();
    expect(await create({ minAmount: 20_000_000n }).ask(needOf())).toBe(true);
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

  it("does nothing where it can serve no need", async () => {
    const { ask, proposals } = create();
    expect(await ask(needOf({ network: "eip155:8453" }))).toBe(false);
    expect(proposals).toEqual([]);
    expect(await world().countSent()).toBe(0);
  });

  it("does nothing when it is declined", async () => {
    expect(await create({ ask: () => false }).ask(needOf())).toBe(false);
    expect(await world().countSent()).toBe(0);
  });

  it("asks again when less would arrive than agreed, and sends nothing after a no", async () => {
    const { ethereum, configure, countSent } = world();
    const oft = contractOf("ethereum", "oft");
    const arrives: bigint[] = [];
    const { ask } = create({
      async ask({ quote }) {
        arrives.push(quote.amountReceived);
        await configure(ethereum, oft, { functionName: "setFeeBps", args: [1n] });
        return arrives.length === 1;
      },
    });
    expect(await ask(needOf())).toBe(false);
    expect(arrives).toHaveLength(2);
    expect(arrives[1]).toBeLessThan(arrives[0] ?? 0n);
    expect(await countSent()).toBe(0);
  });

  it("reports why it failed", async () => {
    const { ask } = create();
    await expectBridgeError(ask(needOf({ amount: funds * 2n })), "insufficient_balance");
    const late = create({ timeoutMs: 50, onProgress: () => undefined });
    await expectBridgeError(late.ask(needOf()), "delivery_timeout");
  });

  it("never brings gold for dollars", async () => {
    const { ethereum, plasma, layerZero, buyer, countSent } = world();
    const oft = contractOf("plasma", "xautOft");
    await layerZero.connect([
      { devnet: ethereum, oft: contractOf("ethereum", "xautOft"), token: xaut, locks: true },
      { devnet: plasma, oft, token: await plasma.deployToken({ decimals: 6 }), locks: true },
    ]);
    await ethereum.mint({ token: xaut, to: buyer, amount: 10_000_000n });
    const { ask, proposals } = create({ token: xaut });
    await expectBridgeError(ask(needOf()), "invalid_configuration");
    expect(proposals).toEqual([]);
    expect(await countSent()).toBe(0);
  });

  it("avoids a chain where no node can confirm the arrival", async () => {
    const bridge = world().createBridge({ targetRpcUrls: {} });
    const { ask, proposals } = create({ bridge });
    expect(await ask(needOf())).toBe(false);
    expect(proposals).toEqual([]);
  });

  it.each([
    { confirmations: 0 },
    { confirmations: 1.5 },
    { timeoutMs: Number.NaN },
    { pollIntervalMs: 0 },
    { minAmount: -1n },
  ])("refuses %o at its creation", (change) => {
    expect(() => create(change)).toThrow(
      expect.objectContaining({ code: "invalid_configuration" }),
    );
  });

  it("sends nothing once it is aborted between the approval and the send", async () => {
    const { buyer, createBridge, countSent, ethereum, balanceOf } = world();
    const abort = new AbortController();
    const reason = new Error("not any more");
    const topUp = createTopUp({
      bridge: createBridge(),
      token: usdt,
      ask: () => true,
      onProgress: ({ state }) => (state === "approved" ? abort.abort(reason) : undefined),
    });
    const call = topUp({ payer: buyer, needs: [needOf()], signal: abort.signal });
    await expect(call).rejects.toBe(reason);
    expect(await countSent()).toBe(1);
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(funds);
  });
});

describe("concurrent top-ups", () => {
  it("concurrent top-ups to the same chain share one transfer", async () => {
    const { plasma, buyer, balanceOf } = world();
    const { ask, proposals } = create();
    expect(await Promise.all([ask(needOf()), ask(needOf()), ask(needOf())])).toEqual([
      true,
      true,
      true,
    ]);
    expect(proposals).toHaveLength(1);
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(1_001_002n);
  });

  it("bring only the amount that the first left missing", async () => {
    const { ask, proposals } = create();
    await Promise.all([ask(needOf()), ask(needOf({ amount: 3_000_000n }))]);
    expect(proposals.map(({ need }) => need.balance)).toEqual([0n, 1_001_002n]);
  });

  it("wait for a node that lags behind the first one's arrival", async () => {
    const { plasma, createBridge } = world();
    const proxy = await startRpcProxy(plasma.rpcUrl);
    const before = await plasma.client.getBlockNumber({ cacheTime: 0 });
    let late = 0;
    // One of the nodes behind the URL, which answers balances: it lags for three requests.
    proxy.judge(({ method, params: [call, block] }) => {
      if (method !== "eth_call" || late === 4) return "forward";
      late += 1;
      if (block === "latest") return { params: [call, toHex(before)] };
      return { error: { code: -32000, message: "header not found" } };
    });
    const bridge = createBridge({ targetRpcUrls: { plasma: proxy.url } });
    const { ask, proposals } = create({ bridge });
    expect(await Promise.all([ask(needOf()), ask(needOf())])).toEqual([true, true]);
    expect(proposals).toHaveLength(1);
    expect(late).toBe(4);
    await proxy.close();
  });

  it("survive the abort of one that waits", async () => {
    const { buyer, createBridge, layerZero } = world();
    const abort = new AbortController();
    const reason = new Error("not any more");
    const topUp = createTopUp({
      bridge: createBridge(),
      token: usdt,
      ask: () => true,
      pollIntervalMs: 10,
      async onProgress({ state }) {
        if (state === "sending") abort.abort(reason);
        if (state === "sent") await layerZero.deliver();
      },
    });
    const needs = [needOf()];
    const first = topUp({ payer: buyer, needs, signal: undefined });
    const second = topUp({ payer: buyer, needs, signal: abort.signal });
    await expect(second).rejects.toBe(reason);
    expect(await first).toBe(true);
  });
});
