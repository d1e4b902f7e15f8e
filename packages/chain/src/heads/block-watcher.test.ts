import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type BlockEvent,
  type BlockWatcher,
  type BlockWatcherOptions,
  blockByNumber,
  createBlockWatcher,
  createRpcPool,
  RpcClosedError,
  type RpcPool,
} from "../index.ts";
import { type FaultServer, honest, startFaultServer } from "../testing/fault-server.ts";
import { answerMethod, answerStatus } from "../testing/faults.ts";
import { createManualClock } from "../testing/manual-clock.ts";

let devnet: Devnet;
let first: FaultServer;
let second: FaultServer;
let pool: RpcPool;
let watcher: BlockWatcher;
let events: BlockEvent[];

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mine(30);
});
afterAll(() => devnet.stop());
beforeEach(async () => {
  first = await startFaultServer(devnet.rpcUrl);
  second = await startFaultServer(devnet.rpcUrl);
});
afterEach(async () => {
  watcher.close();
  pool.close();
  await Promise.all([first.close(), second.close()]);
});

function createWatcher(options: Partial<BlockWatcherOptions> = {}, servers = [first]) {
  const rpcUrls = servers.map((server) => server.url);
  pool = createRpcPool({
    chainId: devnet.chainId,
    rpcUrls,
    timeoutMs: 5_000,
    patienceMs: 0,
    restMs: 50,
    failureThreshold: 1,
  });
  watcher = createBlockWatcher({ pool, pollIntervalMs: 20, ...options });
}

/** Subscribes, and waits until the watcher knows the head. */
async function watch() {
  events = [];
  const unsubscribe = watcher.subscribe((event) => void events.push(event));
  await watcher.waitForBlock(await devnet.client.getBlockNumber());
  return unsubscribe;
}

function numbers(blocks: readonly { number: bigint }[]) {
  return blocks.map((block) => block.number);
}

/** Until the requests under way have ended. */
async function settled() {
  await expect.poll(() => pool.status()[0]?.inFlight).toBe(0);
}

function hashOf(byte: number): `0x${string}` {
  return `0x${byte.toString(16).padStart(64, "0")}`;
}

async function lastEvent() {
  const hash = (await devnet.client.getBlock()).hash;
  await expect.poll(() => watcher.latest()?.hash).toBe(hash);
  return events.at(-1);
}

/** Blocks of a reorganisation, which a poll in its middle sees in two steps. */
function changesSince(eventCount: number) {
  const later = events.slice(eventCount);
  return {
    left: later.flatMap((event) => (event.type === "reorganised" ? event.left : [])),
    entered: later.flatMap((event) => ("entered" in event ? event.entered : [])),
  };
}

describe("a block watcher", () => {
  it("reports every block, also those between two polls", async () => {
    createWatcher();
    await watch();
    const before = await devnet.client.getBlockNumber();
    await devnet.mine(7);
    await watcher.waitForBlock(before + 7n);

    const entered = events.flatMap((event) => ("entered" in event ? event.entered : []));

    const expected = Array.from({ length: 8 }, (_, index) => before + BigInt(index));
    expect(numbers(entered)).toEqual(expected);
    for (const [index, block] of entered.entries())
      if (index > 0) expect(block.parentHash).toBe(entered[index - 1]?.hash);
  });

  it("reports the removed and the added blocks of a reorganisation", async () => {
    createWatcher();
    await watch();
    await devnet.mine(5);
    await lastEvent();
    const before = await devnet.client.getBlockNumber();
    const eventCount = events.length;

    await devnet.reorg({ depth: 3 });

    await lastEvent();
    const { left, entered } = changesSince(eventCount);
    expect(numbers(left)).toEqual([before - 2n, before - 1n, before]);
    expect(numbers(entered)).toEqual(numbers(left));
    expect(entered.map((block) => block.hash)).not.toContain(left[0]?.hash);
  });

  it("detects a reorganisation to a lower height by its hashes", async () => {
    createWatcher();
    await watch();
    const snapshot = await devnet.snapshot();
    await devnet.mine(5);
    await lastEvent();
    const before = watcher.latest();
    const eventCount = events.length;

    await devnet.revert(snapshot);
    await devnet.client.increaseTime({ seconds: 100 });
    await devnet.mine(2);

    await lastEvent();
    const { left, entered } = changesSince(eventCount);
    expect(left.at(-1)).toEqual(before);
    expect(left).toHaveLength(5);
    expect(entered).toHaveLength(2);
  });

  it("reports a gap when it missed too many blocks to count", async () => {
    createWatcher({ windowSize: 4 });
    const unsubscribe = await watch();
    unsubscribe();
    await devnet.mine(10);

    await watch();

    expect(events.find((event) => event.type !== "advanced")).toMatchObject({
      type: "reset",
      reason: "missed-blocks",
    });
  });

  it("reports a gap when the chain changed below its window", async () => {
    createWatcher({ windowSize: 3 });
    await watch();
    await devnet.mine(3);
    await lastEvent();

    await devnet.reorg({ depth: 8 });

    // A poll in the middle of it sees its first blocks, and the others after that.
    await lastEvent();
    expect(events).toContainEqual(
      expect.objectContaining({ type: "reset", reason: "deep-reorganisation" }),
    );
  });

  it("ignores a stale head, and rolls nothing back", async () => {
    createWatcher({}, [first, second]);
    await watch();
    await devnet.mine(3);
    await lastEvent();
    const head = watcher.latest();
    const eventCount = events.length;
    const old = await pool.request(blockByNumber((head?.number ?? 0n) - 2n));

    first.set(answerMethod("eth_getBlockByNumber", old));
    await watcher.refresh();

    expect(watcher.latest()).toEqual(head);
    expect(events).toHaveLength(eventCount);
  });

  it("ignores another endpoint's fork unless it is longer", async () => {
    createWatcher({}, [first, second]);
    await watch();
    await lastEvent();
    const head = watcher.latest();
    const fork = await devnet.client.getBlock();
    const otherHash = `0x${"ab".repeat(32)}`;
    first.set(answerStatus(503));
    second.set(
      answerMethod("eth_getBlockByNumber", {
        number: `0x${fork.number.toString(16)}`,
        hash: otherHash,
        parentHash: fork.parentHash,
        timestamp: `0x${fork.timestamp.toString(16)}`,
      }),
    );
    const eventCount = events.length;

    await watcher.refresh();

    expect(watcher.latest()).toEqual(head);
    expect(events).toHaveLength(eventCount);
  });

  it("leaves a head that one endpoint alone has shown, once that endpoint is silent", async () => {
    const clock = createManualClock();
    createWatcher({ clock }, [first, second]);
    const block = await devnet.client.getBlock();
    first.set(
      answerMethod("eth_getBlockByNumber", {
        number: `0x${(block.number + 1_000_000n).toString(16)}`,
        hash: hashOf(1),
        parentHash: hashOf(2),
        timestamp: `0x${(block.timestamp + 2_000_000n).toString(16)}`,
      }),
    );
    expect(await watcher.refresh()).toMatchObject({ hash: hashOf(1) });
    first.set(answerStatus(503));
    expect(await watcher.refresh()).toMatchObject({ hash: hashOf(1) });

    clock.advance(15_000);

    expect(await watcher.refresh()).toMatchObject({ hash: block.hash });
  });

  it("survives an outage, and reports its beginning and its end once", async () => {
    createWatcher();
    await watch();
    first.set(answerStatus(500));
    await expect.poll(() => watcher.status().reachable).toBe(false);
    await expect(watcher.refresh()).rejects.toThrow("No RPC endpoint");
    await devnet.mine(2);
    const eventCount = events.length;

    first.set(honest);

    await lastEvent();
    expect(events.slice(eventCount - 1)).toMatchObject([
      { type: "unreachable" },
      { type: "reachable" },
      { type: "advanced", entered: [{}, {}] },
    ]);
    expect(watcher.status()).toMatchObject({ reachable: true, watching: true });
  });

  it("continues with another endpoint where the first one stopped", async () => {
    createWatcher({}, [first, second]);
    await watch();
    first.set(answerStatus(500));
    await devnet.mine(3);

    expect(await lastEvent()).toMatchObject({ type: "advanced" });
    expect(watcher.status()).toMatchObject({ endpoint: 2, reachable: true });
  });

  it("polls only while it has a subscriber", async () => {
    createWatcher();
    const unsubscribe = await watch();
    unsubscribe();
    await expect.poll(() => pool.status()[0]?.inFlight).toBe(0);
    const asked = first.requests.length;
    await devnet.mine(1);

    expect(watcher.status()).toMatchObject({ watching: false, subscribers: 0, stalled: false });
    await watcher.refresh();

    expect(first.requests.length).toBe(asked + 1);
  });

  it("reads nothing for a subscriber that only listens, which receives what others read", async () => {
    createWatcher();
    await pool.ready();
    const asked = first.requests.length;
    const heard: BlockEvent[] = [];
    watcher.subscribe((event) => void heard.push(event), {
      pollIntervalMs: Number.POSITIVE_INFINITY,
    });
    expect(watcher.status()).toMatchObject({ watching: false, subscribers: 1, stalled: false });
    await watcher.refresh();
    expect(first.requests.length).toBe(asked + 1);
    expect(heard).toMatchObject([{ type: "advanced" }]);
  });

  it("polls less often once its subscriber asks for less", async () => {
    const clock = createManualClock();
    createWatcher({ clock });
    const often = watcher.subscribe(() => undefined, { pollIntervalMs: 500 });
    clock.advance(0);
    await expect.poll(() => watcher.latest()).toBeDefined();
    await settled();
    const asked = first.requests.length;
    watcher.subscribe(() => undefined, { pollIntervalMs: 60_000 });
    often();
    for (let second = 0; second < 59; second += 1) clock.advance(1_000);
    await settled();
    expect(first.requests.length).toBe(asked);
    clock.advance(1_000);
    await expect.poll(() => first.requests.length).toBe(asked + 1);
  });

  it("reads again what it knows only where that is too old for the caller", async () => {
    const clock = createManualClock();
    createWatcher({ clock });
    await watcher.fresh(5_000);
    const asked = first.requests.length;
    clock.advance(5_000);
    await watcher.fresh(5_000);
    expect(first.requests.length).toBe(asked);
    clock.advance(1);
    await watcher.fresh(5_000);
    expect(first.requests.length).toBe(asked + 1);
  });

  it("takes over a head that another process has read, without a request or an event", async () => {
    createWatcher({ clock: createManualClock() });
    const known = await watcher.refresh();
    const asked = first.requests.length;
    const heard: BlockEvent[] = [];
    watcher.subscribe((event) => void heard.push(event), {
      pollIntervalMs: Number.POSITIVE_INFINITY,
    });
    const number = known.number + 1n;
    const next = { ...known, number, parentHash: known.hash, hash: hashOf(1) };
    watcher.learn(next);
    expect(watcher.latest()).toEqual(next);
    expect(await watcher.fresh(0)).toEqual(next);
    expect(heard).toEqual([]);
    expect(first.requests.length).toBe(asked);
  });

  it("forgets what another process has read with its next own poll, however high it was", async () => {
    createWatcher({ clock: createManualClock() });
    const known = await watcher.refresh();
    const wrong = { ...known, number: known.number + 1_000_000n, hash: hashOf(1) };
    watcher.learn(wrong);
    expect(await watcher.read(0)).toEqual(known);
    expect(watcher.latest()).toEqual(wrong);
    await watcher.refresh();
    expect(watcher.latest()).toEqual(known);
    watcher.learn(wrong);
    watcher.learn(known);
    expect(watcher.latest()).toEqual(known);
  });

  it("begins anew instead of reading more missed blocks than it may", async () => {
    createWatcher({ clock: createManualClock(), maxMissed: 4 });
    await watcher.refresh();
    const heard: BlockEvent[] = [];
    watcher.subscribe((event) => void heard.push(event), {
      pollIntervalMs: Number.POSITIVE_INFINITY,
    });
    await devnet.mine(5);
    const asked = first.requests.length;
    await watcher.refresh();
    expect(first.requests.length).toBe(asked + 1);
    expect(heard).toMatchObject([{ type: "reset", reason: "missed-blocks" }]);
  });

  it("shares one poll among concurrent callers", async () => {
    createWatcher();
    await pool.ready();
    const asked = first.requests.length;

    const heads = await Promise.all([watcher.refresh(), watcher.refresh(), watcher.refresh()]);

    expect(first.requests.length).toBe(asked + 1);
    expect(new Set(heads).size).toBe(1);
  });

  it("polls at once for its first subscriber, however many join at the same time", async () => {
    createWatcher({ pollIntervalMs: 60_000 });
    watcher.subscribe(() => undefined);
    watcher.subscribe(() => undefined);

    await expect.poll(() => watcher.latest(), { timeout: 20_000 }).toBeDefined();
  });

  it("polls faster as soon as a subscriber asks for it", async () => {
    createWatcher({ pollIntervalMs: 60_000 });
    await watch();
    const before = await devnet.client.getBlockNumber();
    await devnet.mine();

    const head = await watcher.waitForBlock(before + 1n, { pollIntervalMs: 20 });

    expect(head.number).toBe(before + 1n);
  });

  it("survives listeners that throw or reject", async () => {
    const errors: unknown[] = [];
    createWatcher({ onListenerError: (error) => errors.push(error) });
    watcher.subscribe(() => {
      throw new Error("thrown");
    });
    watcher.subscribe(() => Promise.reject(new Error("rejected")));
    await watch();
    await devnet.mine();

    expect(await lastEvent()).toMatchObject({ type: "advanced" });
    await expect.poll(() => errors.length).toBeGreaterThanOrEqual(2);
  });

  it("reports a head as stalled that has not changed for too long", async () => {
    createWatcher({ stalledAfterMs: 2_000 });
    await watch();
    await expect.poll(() => watcher.status().stalled, { timeout: 20_000 }).toBe(true);

    await devnet.mine();
    await lastEvent();

    expect(watcher.status().stalled).toBe(false);
  });

  it("ends a wait for a block on abort and on close, and then stays idle", async () => {
    createWatcher();
    await watch();
    const controller = new AbortController();
    const aborted = watcher.waitForBlock(1_000_000n, { signal: controller.signal });
    const closed = watcher.waitForBlock(1_000_000n);
    const reason = new Error("enough");

    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    watcher.close();

    await expect(closed).rejects.toBeInstanceOf(RpcClosedError);
    await expect(watcher.refresh()).rejects.toBeInstanceOf(RpcClosedError);
    expect(watcher.status()).toMatchObject({ watching: false });
  });

  it("stops when its pool is closed", async () => {
    createWatcher();
    await watch();

    pool.close();

    await expect.poll(() => watcher.status().watching).toBe(false);
    expect(events.map((event) => event.type)).not.toContain("unreachable");
  });
});
