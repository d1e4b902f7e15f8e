import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@coinslot/chain";
import { erc20Abi, numberToHex } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import type { Bridge, TopUpOptions } from "../index.ts";
import { usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { startRpcProxy } from "../testing/rpc-proxy.ts";
import { createTopUps, needOf } from "../testing/top-up-scene.ts";

const world = useBridgeWorld();

const create = createTopUps(world);

/** No executor delivers the messages, and the wait is short. */
const silent: Partial<TopUpOptions> = { timeoutMs: 50, onProgress: () => undefined };

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

describe("a top-up beside a node that lies about its block", () => {
  it("is over by the true block alone, and is not made again", async () => {
    const { plasma, countSent, createBridge } = world();
    const proxy = await startRpcProxy(plasma.rpcUrl);
    onTestFinished(proxy.close);
    const far = 10n ** 15n;
    let isSearched = false;
    proxy.judge(({ method }) => {
      if (method === "eth_blockNumber" && isSearched) {
        return { answer: () => numberToHex(far + 100n) };
      }
      if (method !== "eth_getLogs") return "forward";
      isSearched = true;
      const lie = (log: object) => ({ ...log, blockNumber: numberToHex(far) });
      return { answer: (logs) => z.array(z.looseObject({})).parse(logs).map(lie) };
    });
    const honest = plasma.rpcUrl.replace("127.0.0.1", "localhost");
    const bridge = createBridge({ targetRpcUrls: { plasma: [proxy.url, honest] } });
    const { ask, proposals } = create({ bridge, timeoutMs: 2_000 });
    await expectBridgeError(ask(needOf()), "delivery_timeout");
    proxy.judge(() => "forward");
    expect(await ask(needOf())).toBe(true);
    expect(proposals).toHaveLength(1);
    expect(await countSent()).toBe(2);
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
