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
  await vi.waitFor(() => expect(searched).toContain(head), 10_000);
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect((await facilitator.payments.list()).payments).toMatchObject([{ state: "confirmed" }]);
  }, 10_000);
  await facilitator.close();
});
