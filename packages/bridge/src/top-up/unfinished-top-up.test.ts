import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { startRpcProxy } from "../testing/rpc-proxy.ts";
import { isBroadcast } from "../testing/send-scene.ts";
import { createTopUps, needOf } from "../testing/top-up-scene.ts";

const world = useBridgeWorld();
const create = createTopUps(world);

let folder: string | undefined;
afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** A file for a top-up, and the hashes in it. */
async function createMemory() {
  folder = await mkdtemp(join(tmpdir(), "coinslot-top-up-"));
  const file = join(folder, "under-way.json");
  const countKept = async () => JSON.parse(await readFile(file, "utf8")).transfers.length;
  return { file, countKept };
}

/** Each wait takes no time, and moves the clock on. */
function createFastClock() {
  let now = 0;
  return {
    now: () => now,
    setTimer(work: () => void, delayMs: number) {
      now += delayMs;
      const timer = setImmediate(work);
      return () => clearImmediate(timer);
    },
  };
}

it("a refused top-up whose nonce was reused ends within calls shorter than a minute", async () => {
  const { ethereum, approve, buyer, createBridge, countSent } = world();
  await approve(10_000_000n);
  const proxy = await startRpcProxy(ethereum.rpcUrl);
  onTestFinished(proxy.close);
  let isRefusing = true;
  const refusal = { error: { code: -32000, message: "transaction underpriced" } };
  proxy.judge((call) => (isRefusing && isBroadcast(call) ? refusal : "forward"));
  const clock = createFastClock();
  const rpcUrl = [proxy.url, proxy.url.replace("127.0.0.1", "localhost")];
  const bridge = createBridge({ clock }, { rpcUrl });
  const { ask, proposals } = create({ bridge, clock, timeoutMs: 30_000, pollIntervalMs: 5_000 });
  await expectBridgeError(ask(needOf()), "outcome_unclear");
  const another = await ethereum.client.sendTransaction({
    account: ethereum.accounts.buyer,
    to: buyer,
  });
  await ethereum.client.waitForTransactionReceipt({ hash: another });
  const late = await expectBridgeError(ask(needOf()), "delivery_timeout");
  expect(late.message).toContain("transaction underpriced");
  expect(proposals).toHaveLength(1);
  // Each goes to one node, then to both: once in the send, and twice in the 30 s of the wait.
  const broadcasts = proxy.calls.filter(isBroadcast).length;
  expect(broadcasts).toBeLessThanOrEqual(9);

  isRefusing = false;
  expect(await ask(needOf())).toBe(true);
  expect(proposals).toHaveLength(2);
  // The approval, the other transaction, and one transfer.
  expect(await countSent()).toBe(3);
});

it("tokens that have arrived are spent while a source host is away, and nothing more is sent", async () => {
  const { ethereum, approve, createBridge, countSent } = world();
  await approve(10_000_000n);
  const { file, countKept } = await createMemory();
  const bridge = createBridge({}, { rpcUrl: [ethereum.rpcUrl, "http://127.0.0.1:1"] });
  const { ask, proposals } = create({ bridge, file, timeoutMs: 2_000 });
  expect(await ask(needOf())).toBe(true);
  expect(await countKept()).toBe(1);
  // A balance that is there suffices again, and one that is missing is not bridged.
  expect(await ask(needOf())).toBe(true);
  await expectBridgeError(ask(needOf({ amount: 5_000_000n })), "delivery_timeout");
  expect(proposals).toHaveLength(1);
  expect(await countSent()).toBe(2);

  const both = create({ file, bridge: createBridge() });
  expect(await both.ask(needOf())).toBe(true);
  expect(await countKept()).toBe(0);
});

it("tokens that are not deep enough are not spent while a source host is away", async () => {
  const { ethereum, approve, createBridge } = world();
  await approve(10_000_000n);
  const bridge = createBridge({}, { rpcUrl: [ethereum.rpcUrl, "http://127.0.0.1:1"] });
  const { ask } = create({ bridge, timeoutMs: 1_000, confirmations: 1_000 });
  await expectBridgeError(ask(needOf()), "delivery_timeout");
});
