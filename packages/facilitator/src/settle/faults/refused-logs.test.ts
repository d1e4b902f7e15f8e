import { expect, it, onTestFinished, vi } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { drain, reserve, settle, useSettlingDevnet } from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

it("payments become final while the search for a failed one is refused", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  let isRefusing = false;
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
    isRefusing && method === "eth_getLogs"
      ? { error: { code: -32005, message: "query returned more than 10000 results" } }
      : ask(),
  );
  onTestFinished(() => proxy.close());
  const facilitator = await start({
    network: { rpcUrls: [proxy.url], finalAfter: 3 },
    times: { sweepMs: 100 },
  });
  const failing = await pay();
  const reservation = await reserve(facilitator, failing);
  await drain(here);
  expect(await settle(facilitator, failing, reservation)).toMatchObject({ success: false });
  isRefusing = true;
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000n });
  // The head that the watch knows is below this block.
  await devnet.mine(2);
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    const { payments } = await facilitator.payments.list({ state: "confirmed" });
    expect(payments[0]?.finalAt).toBeDefined();
  }, 20_000);
  await facilitator.close();
});
