import { type Clock, sleep, systemClock } from "@coinslot/chain";
import { createTestDatabase } from "@coinslot/devnet";
import { expect, it, type TestContext, vi } from "vitest";
import { type CountingProxy, startCountingProxy, sumOf } from "../testing/counting-proxy.ts";
import { drain, reserve, settle } from "../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";

const minuteMs = 60_000;
/** A lease outlives the database's pauses, which no clock shortens. */
const times = { leaseMs: 60_000 };

/** A test that runs beside others names itself where it leaves work for its end. */
type Finishing = Pick<TestContext, "onTestFinished">;

/**
 * A process's clock, by which a minute takes six seconds once it is made fast. It is created first:
 * it ends last, since a process that stops needs it.
 */
function createFastClock({ onTestFinished }: Finishing): Clock & { makeFast(): void } {
  let speed = 1;
  let base = { real: systemClock.now(), shown: 0 };
  const timers = new Set<{ at: number; run: () => void }>();
  const now = () => base.shown + speed * (systemClock.now() - base.real);
  const beat = setInterval(() => {
    for (const timer of timers) if (timer.at <= now() && timers.delete(timer)) timer.run();
  }, 5);
  onTestFinished(() => clearInterval(beat));
  return {
    now,
    setTimer(run, delayMs) {
      const timer = { at: now() + delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    makeFast() {
      base = { real: systemClock.now(), shown: now() };
      speed = 10;
    },
  };
}

async function begin(
  { onTestFinished }: Finishing,
  options: { blockTimeSeconds?: number } = {},
): Promise<{
  here: SettlingDevnet;
  node: CountingProxy;
  network: { rpcUrls: [string] };
}> {
  const here = await startSettlingDevnet("sqlite", options);
  onTestFinished(() => here.stop());
  const node = await startCountingProxy(here.devnet.rpcUrl);
  onTestFinished(() => node.close());
  return { here, node, network: { rpcUrls: [node.url] } };
}

// They wait for the time of a clock or of a chain, which passes for all of them at once.
it.concurrent("a seller without payments asks its node at most four times a minute", async (test) => {
  const clock = createFastClock(test);
  const { here, node, network } = await begin(test);
  await here.start({ network, clock, times });
  node.take();
  clock.makeFast();
  await sleep(clock, 2 * minuteMs);
  const calls = node.take();
  expect(sumOf(calls)).toBeLessThanOrEqual(8);
  // The head is read all the same: balance and tip are of use with it alone.
  expect(calls.get("eth_getBlockByNumber")).toBeGreaterThan(0);
});

it.concurrent("processes of one ledger ask a node no more often than one, and another goes on without it", async (test) => {
  const clock = createFastClock(test);
  const { here, node, network } = await begin(test);
  const database = await createTestDatabase();
  test.onTestFinished(() => database.drop());
  const options = { network, clock, times, ledger: database.url };
  const one = await here.start(options);
  const two = await here.start(options);
  node.take();
  clock.makeFast();
  await sleep(clock, 2 * minuteMs);
  expect(sumOf(node.take())).toBeLessThanOrEqual(8);

  await one.close();
  node.take();
  await vi.waitFor(() => expect(node.take().get("eth_getBlockByNumber")).toBeGreaterThan(0), {
    timeout: 20_000,
    interval: 100,
  });
  await two.close();
});

it.concurrent("the head is read after 10, 20 and 40 seconds while a failed payment may be executed", async (test) => {
  const clock = createFastClock(test);
  const { here, node, network } = await begin(test);
  const facilitator = await here.start({
    network: { ...network, finalAfter: 1 },
    clock,
    times: { ...times, settlingMs: 10_000 },
  });
  const paid = await here.pay();
  const reservation = await reserve(facilitator, paid);
  await drain(here);
  expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
  // The block of the failed transaction is final with the next look.
  await here.devnet.mine(3);
  clock.makeFast();
  await sleep(clock, 15_000);
  node.take();
  await sleep(clock, 40_000);
  expect(node.take().get("eth_getBlockByNumber")).toBeGreaterThanOrEqual(2);
});

it.concurrent("a payment alone costs a trial, a broadcast, its receipt and two reads until it is final", async (test) => {
  const { here, node, network } = await begin(test, { blockTimeSeconds: 1 });
  const facilitator = await here.start({
    network: { ...network, finalAfter: 3 },
    times: { settlingMs: 10_000 },
  });
  const payAlone = async () => {
    const paid = await here.pay();
    const settled = await settle(facilitator, paid, await reserve(facilitator, paid));
    expect(settled).toMatchObject({ success: true });
    await vi.waitFor(
      async () => {
        const { payments } = await facilitator.payments.list({ limit: 1 });
        expect(payments[0]?.finalAt).toBeDefined();
      },
      { timeout: 20_000, interval: 100 },
    );
  };
  // The first teach the process the pace of the chain.
  for (let count = 0; count < 2; count += 1) await payAlone();
  node.take();
  const bills: ReturnType<typeof node.take>[] = [];
  for (let count = 0; count < 4; count += 1) {
    await payAlone();
    bills.push(node.take());
  }
  // On a machine that is busy with other work, blocks come late, and are asked for once more; then
  // others are cheaper.
  const [cheapest] = bills.sort((a, b) => sumOf(a) - sumOf(b));
  const calls = new Map(cheapest);
  expect(calls.get("eth_getTransactionReceipt")).toBeLessThanOrEqual(4);
  expect(calls.get("eth_getBlockByNumber")).toBeLessThanOrEqual(6);
  for (const method of ["eth_getTransactionReceipt", "eth_getBlockByNumber", "eth_getBalance"]) {
    calls.delete(method);
  }
  expect([...calls]).toEqual([
    ["eth_call", 1],
    ["eth_sendRawTransaction", 1],
  ]);
});

it("fifty payments at once cost less than a call for each", async (test) => {
  const { here, node, network } = await begin(test, { blockTimeSeconds: 1 });
  const facilitator = await here.start({
    network: { ...network, finalAfter: 3 },
    releaseLimit: { count: 100, windowSeconds: 60 },
  });
  const payments = await Promise.all(Array.from({ length: 50 }, () => here.pay()));
  node.take();
  const settled = await Promise.all(
    payments.map(async (paid) => settle(facilitator, paid, await reserve(facilitator, paid))),
  );
  expect(settled.map(({ success }) => success)).toEqual(payments.map(() => true));
  expect(sumOf(node.take())).toBeLessThan(50);
});

it("the calls to nodes are counted by method", async (test) => {
  const { here, node, network } = await begin(test);
  const facilitator = await here.start({ network });
  await settle(facilitator, await here.pay());
  const metric = facilitator.metrics.getSingleMetric("coinslot_node_calls_total");
  const came = new Map<string, number>();
  // Equal while no call is on its way. A stop would abort one that is counted and never comes.
  await vi.waitFor(
    async () => {
      const { values } = (await metric?.get()) ?? { values: [] };
      for (const [method, count] of node.take()) came.set(method, (came.get(method) ?? 0) + count);
      const counted = new Map(values.map(({ labels, value }) => [String(labels.method), value]));
      expect(counted).toEqual(came);
    },
    { timeout: 20_000 },
  );
  expect(came.get("eth_sendRawTransaction")).toBe(1);
});

it("a budget of calls is kept in every second, and payments are settled within it", async (test) => {
  const { here, node, network } = await begin(test);
  const callsPerSecond = 12;
  const facilitator = await here.start({ network: { ...network, callsPerSecond } });
  const settled = await Promise.all(
    Array.from({ length: 12 }, async () => settle(facilitator, await here.pay())),
  );
  expect(settled.map(({ success }) => success)).toEqual(settled.map(() => true));
  // Calls of one second may arrive closer together, where a busy machine delays the first of them.
  const { times: came } = node;
  for (const [index, time] of came.entries()) {
    const next = came[index + callsPerSecond];
    if (next !== undefined) expect(next - time).toBeGreaterThan(400);
  }
});
