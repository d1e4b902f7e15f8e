import { systemClock } from "@coinslot/chain";
import { expect, it } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  cancel,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

const crowd = 12;

it("payments that were cancelled or executed while they were queued are explained together", async () => {
  const here = await begin();
  const { devnet, start, pay, balanceOf } = here;
  const { buyer, seller } = devnet.accounts;
  let passedMs = 0;
  let searches = 0;
  const held: (() => void)[] = [];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_getLogs") searches += 1;
    // The receipts of strangers' transactions are returned once all of them have been asked for.
    if (method === "eth_getTransactionReceipt" && held.length < crowd) {
      const all = new Promise<void>((resolve) => held.push(resolve));
      if (held.length === crowd) for (const release of held) release();
      await all;
    }
    return ask();
  });
  try {
    const facilitator = await start({
      network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      releaseLimit: { count: 100, windowSeconds: 60 },
    });
    const payments = [];
    for (let index = 0; index < 2 * crowd; index += 1) {
      const paid = await pay();
      payments.push({ paid, reservation: await reserve(facilitator, paid) });
    }
    for (const [index, { paid }] of payments.entries()) {
      await (index < crowd ? cancel(here, buyer, paid) : submitAsStranger(here, paid));
    }
    // All are tried again before they are sent.
    passedMs += 2_000;
    const settled = await Promise.all(
      payments.map(({ paid, reservation }) => settle(facilitator, paid, reservation)),
    );
    expect(settled.map(({ success }) => success)).toEqual(
      payments.map((_, index) => index >= crowd),
    );
    expect(await balanceOf(seller.address)).toBe(BigInt(crowd) * 1_000n);
    // The first payment may be planned before the others are queued.
    expect(searches).toBeLessThanOrEqual(3);
    await facilitator.close();
  } finally {
    await proxy.close();
  }
});
