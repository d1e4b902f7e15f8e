import { systemClock } from "@coinslot/chain";
import { expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  drain,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

it.each([
  ["a new trial", 2_000],
  ["its own transaction", 0],
])(
  "a payment that another sender has executed is answered by its late logs, where %s shows it",
  async (_, passedMs) => {
    const here = await begin();
    const { devnet, start, pay } = here;
    let [isLate, searches, now] = [true, 0, 0];
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method !== "eth_getLogs") return ask();
      searches += 1;
      return isLate ? { result: [] } : ask();
    });
    onTestFinished(() => proxy.close());
    const facilitator = await start({
      network: { rpcUrls: [proxy.url], finalAfter: 10 },
      times: { sweepMs: 100 },
      clock: { ...systemClock, now: () => now },
    });
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const transaction = await submitAsStranger(here, paid);
    now += passedMs;
    const settling = settle(facilitator, paid, reservation);
    // Each look searches twice: in the blocks since its verification, and further back.
    await vi.waitFor(() => expect(searches).toBeGreaterThan(4), 20_000);
    isLate = false;
    expect(await settling).toMatchObject({ success: true, transaction });
    await facilitator.close();
  },
);

it("a payment whose time ends while its logs are late is answered by them", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  let [isLate, searches, now, aheadMs] = [true, 0, 0, 0];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method !== "eth_getLogs") return ask();
    searches += 1;
    return isLate ? { result: [] } : ask();
  });
  onTestFinished(() => proxy.close());
  const facilitator = await start({
    network: { rpcUrls: [proxy.url], finalAfter: 10 },
    times: { sweepMs: 100, leaseMs: 600_000, resendMs: 600_000, replaceMs: 600_000 },
    clock: { ...systemClock, now: () => now },
    now: () => Date.now() + aheadMs,
  });
  const paid = await pay();
  const reservation = await reserve(facilitator, paid);
  const transaction = await submitAsStranger(here, paid);
  now += 2_000;
  const settling = settle(facilitator, paid, reservation);
  const searchMore = async () => {
    const before = searches;
    await vi.waitFor(() => expect(searches).toBeGreaterThan(before + 4), 20_000);
  };
  await searchMore();
  aheadMs = 400_000;
  await devnet.client.increaseTime({ seconds: 400 });
  await devnet.mine();
  await searchMore();
  isLate = false;
  expect(await settling).toMatchObject({ success: true, transaction });
  await facilitator.close();
});

it("a used authorization without logs is waited for during ten seconds, and fails then", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  let [searches, now, isPassing] = [0, 0, false];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method !== "eth_getLogs") return ask();
    searches += 1;
    if (isPassing) now += 2_000;
    return { result: [] };
  });
  onTestFinished(() => proxy.close());
  const facilitator = await start({
    network: { rpcUrls: [proxy.url] },
    times: { sweepMs: 100, leaseMs: 600_000, resendMs: 600_000, replaceMs: 600_000 },
    clock: { ...systemClock, now: () => now },
  });
  const paid = await pay();
  const reservation = await reserve(facilitator, paid);
  await submitAsStranger(here, paid);
  now += 2_000;
  const settling = settle(facilitator, paid, reservation);
  // While no time passes, it is waited for.
  await vi.waitFor(() => expect(searches).toBeGreaterThan(8), 20_000);
  isPassing = true;
  expect(await settling).toMatchObject({
    success: false,
    errorReason: "invalid_exact_evm_nonce_already_used",
  });
  await facilitator.close();
});

it("an execution is looked for at each endpoint where old states are gone", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  let isPruned = false;
  const urls: string[] = [];
  for (const isHiding of [true, false]) {
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
      if (method === "eth_getLogs") isPruned = true;
      if (method === "eth_getLogs" && isHiding) return { result: [] };
      const isOldState = isPruned && method === "eth_call" && params[1] !== "latest";
      return isOldState ? { error: { code: -32_000, message: "missing trie node" } } : ask();
    });
    onTestFinished(() => proxy.close());
    urls.push(proxy.url);
  }
  const facilitator = await start({
    network: { rpcUrls: urls, finalAfter: 2 },
    times: { sweepMs: 100 },
  });
  const paid = await pay();
  const reservation = await reserve(facilitator, paid);
  const transaction = await submitAsStranger(here, paid);
  const settled = await settle(facilitator, paid, reservation);
  expect(settled).toMatchObject({ success: true, transaction });
  await facilitator.close();
});

const filterSchema = z.looseObject({ toBlock: z.string().transform(BigInt) });

it("an execution is found whose block had no logs yet when it was searched", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const { buyer } = devnet.accounts;
  const searched: bigint[] = [];
  // Behind a load balancer: one machine returns the head, another, two blocks behind, the logs.
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    if (method !== "eth_getLogs") return ask();
    const { toBlock } = filterSchema.parse(params[0]);
    const logs = z
      .object({ result: z.array(z.looseObject({ blockNumber: z.string() })) })
      .parse(await ask());
    searched.push(toBlock);
    const head = await devnet.client.getBlockNumber();
    return { result: logs.result.filter(({ blockNumber }) => BigInt(blockNumber) <= head - 2n) };
  });
  onTestFinished(() => proxy.close());
  const facilitator = await start({
    network: { rpcUrls: [proxy.url], finalAfter: 10 },
    times: { sweepMs: 100 },
  });
  const paid = await pay();
  const reservation = await reserve(facilitator, paid);
  await drain(here);
  expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
  await devnet.mint({ to: buyer.address, amount: 1_000n });
  await submitAsStranger(here, paid);
  const head = await devnet.client.getBlockNumber();
  await vi.waitFor(() => expect(searched).toContain(head), 20_000);
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect((await facilitator.payments.list()).payments).toMatchObject([{ state: "confirmed" }]);
  }, 20_000);
  await facilitator.close();
});
