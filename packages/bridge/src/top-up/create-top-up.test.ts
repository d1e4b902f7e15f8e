import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@coinslot/chain";
import { erc20Abi, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Bridge,
  createTopUp,
  type FundsNeed,
  type TopUpOptions,
  type TopUpProposal,
} from "../index.ts";
import { contractOf, funds, usdt, usdt0, useBridgeWorld, xaut } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { startRpcProxy } from "../testing/rpc-proxy.ts";

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
    // Messages are delivered as soon as they are sent.
    async onProgress({ state }) {
      if (state === "sent") await world().layerZero.deliver();
    },
    ...change,
  });
  const ask = (...needs: FundsNeed[]) => topUp({ payer: buyer, needs, signal: undefined });
  return { ask, proposals };
}

/** No executor delivers the messages, and the wait is short. */
const silent: Partial<TopUpOptions> = { timeoutMs: 50, onProgress: () => undefined };

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
  it("to the same chain share one transfer", async () => {
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

describe("a top-up with a transfer in flight", () => {
  it("waits for it instead of sending another, without asking", async () => {
    const { layerZero, countSent } = world();
    const { ask, proposals } = create(silent);
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    await layerZero.deliver();
    expect(await ask(needOf())).toBe(true);
    expect(proposals).toHaveLength(1);
    expect(await countSent()).toBe(2);
  });

  it("prefers its target to another chain that the seller accepts", async () => {
    const { layerZero } = world();
    const { ask, proposals } = create(silent);
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    await layerZero.deliver();
    const stable = needOf({
      network: "eip155:988",
      asset: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736",
    });
    expect(await ask(stable, needOf())).toBe(true);
    expect(proposals).toHaveLength(1);
  });

  it("sends another when that one has arrived and been spent", async () => {
    const { layerZero, plasma } = world();
    const { ask, proposals } = create(silent);
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    await layerZero.deliver();
    await plasma.client.writeContract({
      account: plasma.accounts.buyer,
      address: usdt0,
      abi: erc20Abi,
      functionName: "transfer",
      args: [plasma.accounts.seller.address, 1_001_002n],
    });
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    expect(proposals).toHaveLength(2);
  });
});

describe("a top-up after a crash", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-top-up-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  const file = () => join(folder, "under-way.json");

  /** A bridge whose process ends at a moment of the transfer. */
  function crashAt(state: string): Bridge {
    const bridge = world().createBridge();
    return {
      ...bridge,
      bridge: (request, options) =>
        bridge.bridge(request, {
          async onProgress(progress) {
            await options?.onProgress?.(progress);
            if (progress.state === state) throw new Error("the process is gone");
          },
        }),
    };
  }

  it("waits for the transfer when the crash came after sending", async () => {
    const { layerZero, countSent, plasma, buyer, balanceOf } = world();
    const crashed = create({ file: file(), bridge: crashAt("sent") });
    await expect(crashed.ask(needOf())).rejects.toThrow("the process is gone");
    await layerZero.deliver();
    const again = create({ file: file() });
    expect(await again.ask(needOf())).toBe(true);
    expect(again.proposals).toEqual([]);
    expect(await countSent()).toBe(2);
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(1_001_002n);
    expect(JSON.parse(await readFile(file(), "utf8")).transfers).toEqual([]);
  });

  it("sends the same transfer when the crash came before any node had it", async () => {
    const { layerZero, countSent } = world();
    const crashed = create({ file: file(), bridge: crashAt("sending") });
    await expect(crashed.ask(needOf())).rejects.toThrow("the process is gone");
    expect(await countSent()).toBe(1);
    const again = create({ ...silent, file: file() });
    await expectBridgeError(again.ask(needOf()), "delivery_timeout");
    await layerZero.deliver();
    expect(await again.ask(needOf())).toBe(true);
    expect(again.proposals).toEqual([]);
    expect(await countSent()).toBe(2);
  });

  it("gives up a transfer whose nonce was reused, after a while", async () => {
    const { countSent, approve, twoHosts } = world();
    const crashed = create({ file: file(), bridge: crashAt("sending") });
    await expect(crashed.ask(needOf())).rejects.toThrow("the process is gone");
    await approve(0n);

    let now = 0;
    const clock = { ...systemClock, now: () => now };
    const bridge = world().createBridge({ clock }, { rpcUrl: twoHosts });
    const again = create({ file: file(), bridge, clock, timeoutMs: 1_000_000 });
    const isThere = again.ask(needOf());
    const ticking = setInterval(() => {
      now += 5_000;
    }, 10);
    expect(await isThere).toBe(true);
    clearInterval(ticking);
    expect(again.proposals).toHaveLength(1);
    expect(await countSent()).toBe(4);
  });

  it("stops at a malformed file before any transaction", async () => {
    await writeFile(file(), "{}");
    const { ask, proposals } = create({ file: file() });
    await expectBridgeError(ask(needOf()), "file_unavailable");
    expect(proposals).toEqual([]);
    expect(await readFile(file(), "utf8")).toBe("{}");
  });

  it("sends nothing that it cannot record", async () => {
    const { ask } = create({ file: join(folder, "not", "there.json") });
    await expectBridgeError(ask(needOf()), "file_unavailable");
    expect(await world().countSent()).toBe(1);
  });

  it("sends nothing that another top-up with the same file has sent meanwhile", async () => {
    const first = create({ ...silent, file: file() });
    const second = create({ ...silent, file: file() });
    expect(await second.ask(needOf({ amount: 0n }))).toBe(true);
    await expectBridgeError(first.ask(needOf()), "delivery_timeout");
    await expectBridgeError(second.ask(needOf()), "delivery_timeout");
    expect(second.proposals).toEqual([]);
    expect(await world().countSent()).toBe(2);
  });

  it("sends nothing that another one sends during its question", async () => {
    const first = create({ ...silent, file: file() });
    const second = create({
      file: file(),
      async ask() {
        await expectBridgeError(first.ask(needOf()), "delivery_timeout");
        return true;
      },
    });
    const error = await expectBridgeError(second.ask(needOf()), "file_unavailable");
    expect(error.message).toContain("has sent to plasma meanwhile");
    expect(await world().layerZero.deliver()).toHaveLength(1);
    const { transfers } = JSON.parse(await readFile(file(), "utf8"));
    expect(transfers).toHaveLength(1);
  });

  it("keeps the file to its owner, since anyone could send its transaction", async () => {
    const crashed = create({ file: file(), bridge: crashAt("sent") });
    await expect(crashed.ask(needOf())).rejects.toThrow("the process is gone");
    expect((await stat(file())).mode & 0o777).toBe(0o600);
  });
});
