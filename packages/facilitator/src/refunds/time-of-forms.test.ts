import { expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";

const begin = useRefundingDevnet();
const term = 3_600;
const now = () => Math.floor(Date.now() / 1_000);

it("the form of a refund ends within two terms, though a node shows a block of a far time", async () => {
  const here = await begin("sqlite");
  const { devnet, start } = here;
  let lies = false;
  const liar = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const answer = await ask();
    if (!lies || method !== "eth_getBlockByNumber" || params[0] !== "latest") return answer;
    const { result } = z.object({ result: z.looseObject({}) }).parse(answer);
    return { result: { ...result, timestamp: "0xfffffffffffff" } };
  });
  onTestFinished(() => liar.close());
  const facilitator = await start({
    ...withFloat,
    network: { ...withFloat.network, rpcUrls: [liar.url, devnet.rpcUrl] },
  });
  const payment = await settled(facilitator, here);
  lies = true;
  const { id } = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  const { validBefore } = await vi.waitFor(async () => {
    await devnet.mine(1);
    const row = await facilitator.refunds.get(id);
    expect(row).toMatchObject({ validBefore: expect.anything() });
    return z.looseObject({ validBefore: z.coerce.number() }).parse(row);
  }, patience);
  expect(validBefore).toBeGreaterThanOrEqual(now() + term - 120);
  expect(validBefore).toBeLessThanOrEqual(now() + 2 * term);
  lies = false;
  await becomes(facilitator, here, { id }, { state: "final" });
});

it("a refund goes out on a chain whose time is ahead of this process's clock", async () => {
  const here = await begin("sqlite");
  const { devnet, start } = here;
  const options = { ...withFloat, refunds: { ...withFloat.refunds, validForSeconds: 120 } };
  const facilitator = await start(options);
  const payment = await settled(facilitator, here);
  await devnet.client.increaseTime({ seconds: 100 });
  await devnet.mine(1);
  const { timestamp } = await devnet.client.getBlock();
  const { id } = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  const { validBefore } = await becomes(facilitator, here, { id }, { state: "final" });
  expect(Number(validBefore)).toBeGreaterThanOrEqual(Number(timestamp) + 120);
});
