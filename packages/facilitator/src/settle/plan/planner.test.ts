import { systemClock } from "@coinslot/chain";
import { expect, it, onTestFinished, vi } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { settle, useSettlingDevnet } from "../../testing/settling-actions.ts";

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
    times: { sweepMs, resendMs: 600_000, replaceMs: 600_000 },
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
  await vi.waitFor(async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1));
  const second = settle(facilitator, await pay());
  await vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    expect(payments.map(({ state }) => state)).toEqual(["queued", "submitted"]);
  });

  // Its trial is no longer fresh.
  passedMs = 5_000;
  const [callsBefore, sweepsBefore] = [calls, sweeps];
  await vi.waitFor(() => expect(sweeps).toBeGreaterThan(sweepsBefore + 10), 10_000);
  expect(calls).toBe(callsBefore);

  await devnet.setAutomine(true);
  await devnet.mine();
  expect(await Promise.all([first, second])).toMatchObject([{ success: true }, { success: true }]);
});
