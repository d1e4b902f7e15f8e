import { expect, it, onTestFinished, vi } from "vitest";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";

const begin = useRefundingDevnet();

it("a refund whose token reverts at one node alone is not left to its operator, and goes on", async () => {
  const here = await begin("sqlite");
  const { devnet, start } = here;
  let reverts: number | undefined;
  const liar = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (reverts === undefined || method !== "eth_call") return ask();
    reverts += 1;
    return { error: { code: 3, message: "execution reverted", data: "0x" } };
  });
  onTestFinished(() => liar.close());
  const rpcUrls = [liar.url, devnet.rpcUrl];
  const facilitator = await start({ ...withFloat, network: { ...withFloat.network, rpcUrls } });
  const payment = await settled(facilitator, here);
  reverts = 0;
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await facilitator.refunds.get(refund.id)).not.toMatchObject({ state: "scheduled" });
  }, patience);
  expect(await facilitator.refunds.get(refund.id)).toMatchObject({
    state: "waiting",
    cause: "chain",
  });
  reverts = undefined;
  await becomes(facilitator, here, refund, { state: "final" });
});
