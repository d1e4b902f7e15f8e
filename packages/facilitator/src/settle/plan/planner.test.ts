import { systemClock } from "@coinslot/chain";
import { withDatabase } from "@coinslot/devnet";
import type { SettleResponse } from "@coinslot/protocol";
import { isHex, keccak256, parseTransaction } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  listen,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";

const begin = useSettlingDevnet();
const sweepMs = 57;

it("tries no payment in a sweep that leaves it in the queue", async () => {
  const { devnet, start, pay } = await begin();
  let calls = 0;
  const proxy = await startNodeProxy(devnet.rpcUrl, ({ method }, ask) => {
    if (method === "eth_call") calls += 1;
    return ask();
  });
  onTestFinished(() => proxy.close());
  let [sweeps, passedMs] = [0, 0];
  const facilitator = await start({
    network: { rpcUrls: [proxy.url] },
    times: { sweepMs, leaseMs: 600_000, resendMs: 600_000, replaceMs: 600_000 },
    clock: {
      ...systemClock,
      now: () => systemClock.now() + passedMs,
      setTimer(work, ms) {
        if (ms === sweepMs) sweeps += 1;
        return systemClock.setTimer(work, ms);
      },
    },
  });
  await devnet.setAutomine(false);
  const first = settle(facilitator, await pay());
  await vi.waitFor(
    async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
    20_000,
  );
  // The chain seems to have stopped: no further transaction follows the first.
  passedMs = 16_000;
  const second = settle(facilitator, await pay());
  await vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    expect(payments.map(({ state }) => state)).toEqual(["queued", "submitted"]);
  }, 20_000);

  // Its trial is no longer fresh.
  passedMs = 21_000;
  const [callsBefore, sweepsBefore] = [calls, sweeps];
  await vi.waitFor(() => expect(sweeps).toBeGreaterThan(sweepsBefore + 10), 20_000);
  expect(calls).toBe(callsBefore);

  await devnet.setAutomine(true);
  await devnet.mine();
  expect(await Promise.all([first, second])).toMatchObject([{ success: true }, { success: true }]);
});

it("sends a payment behind a transaction that waits, at the last moment for the next block", async () => {
  // Ethereum: a block each 12 s.
  const { devnet, start, pay } = await begin({ chainId: 1 });
  let passedMs = 0;
  const facilitator = await start({
    // The lease outlives the time that passes at once.
    times: { leaseMs: 600_000 },
    clock: { ...systemClock, now: () => systemClock.now() + passedMs },
  });
  const pending = async () => (await devnet.client.getTxpoolStatus()).pending;
  await devnet.mine();
  await devnet.setAutomine(false);
  const first = settle(facilitator, await pay());
  await vi.waitFor(async () => expect(await pending()).toBe(1), 20_000);
  passedMs += 6_000;
  const second = settle(facilitator, await pay());
  await vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    expect(payments.map(({ state }) => state)).toEqual(["queued", "submitted"]);
  }, 20_000);
  expect(await pending()).toBe(1);

  passedMs += 5_500;
  await vi.waitFor(async () => expect(await pending()).toBe(2), 20_000);
  await devnet.mine();
  expect(await Promise.all([first, second])).toMatchObject([{ success: true }, { success: true }]);
});

it("settles payments behind a waiting transaction in the next block of an interval", async () => {
  const settling = await begin();
  const { devnet, start, pay } = settling;
  const facilitator = await start();
  const events = listen(facilitator);
  await devnet.setAutomine(false);
  await devnet.setIntervalMining(4);
  // A machine that stalls misses the next block now and then; in no round do all payments reach it
  // where only a full transaction follows.
  let waitedBlocks: number[] = [];
  while (waitedBlocks.length === 0 || Math.max(...waitedBlocks) > 1) {
    const payments = [await pay(), await pay(), await pay()];
    const before = await nextBlock(settling);
    events.length = 0;
    const settled: Promise<SettleResponse>[] = [];
    for (const [index, payment] of payments.entries()) {
      settled.push(settle(facilitator, payment));
      // The others come while the first one waits for its block.
      if (index > 0) continue;
      await vi.waitFor(() => expect(events).toContain("settle_started"), 20_000);
    }
    waitedBlocks = [];
    for (const { success, transaction } of await Promise.all(settled)) {
      expect(success).toBe(true);
      waitedBlocks.push(Number((await blockOf(settling, transaction)) - before));
    }
  }
  expect(waitedBlocks).toEqual([1, 1, 1]);
});

/** The number of a block that has just been mined. */
async function nextBlock({ devnet }: SettlingDevnet): Promise<bigint> {
  const known = await devnet.client.getBlockNumber();
  await vi.waitFor(
    async () => expect(await devnet.client.getBlockNumber()).toBeGreaterThan(known),
    { timeout: 20_000, interval: 20 },
  );
  return devnet.client.getBlockNumber();
}

async function blockOf({ devnet }: SettlingDevnet, transaction: string): Promise<bigint> {
  const hash = transaction as `0x${string}`;
  const { blockNumber } = await devnet.client.getTransactionReceipt({ hash });
  return blockNumber;
}

it("fails a payment that eight transactions have carried, where a node counts each one's nonce as used", async () => {
  const { devnet, start, pay } = await begin();
  const nonces = new Set<number | undefined>();
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_getTransactionCount") return { result: `0x${nonces.size.toString(16)}` };
    if (method !== "eth_sendRawTransaction" || !isHex(raw)) return ask();
    nonces.add(parseTransaction(raw).nonce);
    return { result: keccak256(raw) };
  });
  onTestFinished(() => proxy.close());
  const facilitator = await start({
    network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
    times: { sweepMs: 100, resendMs: 100, replaceMs: 60_000, loseMs: 100 },
  });

  expect(await settle(facilitator, await pay())).toMatchObject({
    success: false,
    errorReason: "invalid_exact_evm_transaction_failed",
  });

  expect(nonces.size).toBe(8);
});

it("confirms a payment that eight transactions have carried, and another sender has executed", async () => {
  const here = await begin();
  const { ledger, start, pay } = here;
  const facilitator = await start();
  const paid = await pay();
  const reservation = await reserve(facilitator, paid);
  await withDatabase(ledger.url, ({ execute }) => execute("update payments set carried = 8"));
  const transaction = await submitAsStranger(here, paid);

  expect(await settle(facilitator, paid, reservation)).toMatchObject({
    success: true,
    transaction,
  });
});
