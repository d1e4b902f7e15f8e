import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { type Devnet, startDevnet } from "./devnet.ts";
import { createDevnetClient } from "./devnet-client.ts";
import { listen } from "./listen.ts";

const callSchema = z.looseObject({ id: z.number(), method: z.string() });
const answerSchema = z.looseObject({ result: z.looseObject({}) });

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

test("the client finds a receipt whose block is mined during the lookup, without a later block", async () => {
  const { chainId, rpcUrl, accounts } = devnet;
  const before = await devnet.client.getBlockNumber();
  const hash = await devnet.client.sendTransaction({ to: accounts.buyer.address, value: 1n });
  await expect.poll(() => devnet.client.getBlockNumber()).toBe(before + 1n);
  const asked = new Map<string, number>();
  let tellNextHead: () => void = () => undefined;
  const nextHead = new Promise<void>((resolve) => {
    tellNextHead = resolve;
  });

  /** Returns a state before the block for the first lookups, and the true state afterwards. */
  const proxy = await listen(async (request, response) => {
    const body = await text(request);
    const { id, method } = callSchema.parse(JSON.parse(body));
    const times = (asked.get(method) ?? 0) + 1;
    asked.set(method, times);
    const headers = { "content-type": "application/json" };
    const answer = await (await fetch(rpcUrl, { method: "POST", headers, body })).text();
    const tell = (result: unknown) =>
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    if (method === "eth_getTransactionReceipt" && times <= 2) return tell(null);
    if (method === "eth_getTransactionByHash" && times === 1) {
      const { result } = answerSchema.parse(JSON.parse(answer));
      return tell({ ...result, blockHash: null, blockNumber: null, transactionIndex: null });
    }
    if (method === "eth_blockNumber" && times === 1) return tell(`0x${before.toString(16)}`);
    if (method === "eth_blockNumber" && times === 3) tellNextHead();
    if (method === "eth_getBlockByNumber") await nextHead;
    return response.writeHead(200, headers).end(answer);
  });
  try {
    const client = createDevnetClient({ rpcUrl: proxy.url, chainId, account: accounts.deployer });
    expect(await client.waitForTransactionReceipt({ hash })).toMatchObject({ status: "success" });
  } finally {
    await proxy.close();
  }
});
