import { numberToHex, parseGwei } from "viem";
import { expect, it } from "vitest";
import * as z from "zod";
import { startChain } from "../testing/scene.ts";
import { computeLogsBloom } from "./logs-bloom.ts";
import { emptyTrieRoot } from "./ordered-trie-root.ts";
import { verifyReceipts } from "./receipts-root.ts";

const zeroBloom = `0x${"0".repeat(512)}`;

const blockSchema = z.object({ receiptsRoot: z.string() });
const receiptsSchema = z.array(z.looseObject({ logs: z.array(z.unknown()) }));

async function ask(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body });
  return z.object({ result: z.unknown() }).parse(await answer.json()).result;
}

it("the receipts root equals a published test vector", () => {
  const receipt = {
    type: "0x1",
    status: "0x1",
    cumulativeGasUsed: `0x${(102_068).toString(16)}`,
    logsBloom: `${zeroBloom.slice(0, -1)}1`,
    logs: [{ address: `0x${"0".repeat(40)}`, topics: [], data: "0x" }],
  };
  const root = "0xfe70ae4a136d98944951b2123859698d59ad251a381abc9960fa81cae3d0d4a0";
  expect(verifyReceipts([receipt], root)).toEqual({ kind: "proven" });
  expect(verifyReceipts([{ ...receipt, status: "0x0" }], root)).toEqual({ kind: "different" });
  expect(verifyReceipts([], emptyTrieRoot)).toEqual({ kind: "proven" });
  expect(verifyReceipts([], root)).toEqual({ kind: "different" });
});

it("the receipts root proves blocks of a real chain: all common types, failures, and more than 128 transactions", async () => {
  const devnet = await startChain();
  const { client, accounts, token } = devnet;
  const sender = accounts.deployer;
  await client.setAutomine(false);
  const authorization = await accounts.buyer.signAuthorization({
    contractAddress: token,
    chainId: await client.getChainId(),
    nonce: await client.getTransactionCount({ address: accounts.buyer.address }),
  });
  const maxFeePerGas = parseGwei("100");
  const types = [
    { type: "legacy", gasPrice: maxFeePerGas },
    { type: "eip2930", gasPrice: maxFeePerGas, accessList: [] },
    { type: "eip1559", maxFeePerGas },
    { type: "eip7702", maxFeePerGas, authorizationList: [authorization] },
  ] as const;
  let nonce = await client.getTransactionCount({ address: sender.address });
  const send = async (index: number) => {
    const fees = types[index % types.length];
    const recipient = accounts.seller.address.slice(2).toLowerCase().padStart(64, "0");
    // Every fifth asks for more than the balance, and fails.
    const amount = index % 5 === 4 ? "f".repeat(64) : (1).toString(16).padStart(64, "0");
    const serializedTransaction = await sender.signTransaction({
      chainId: await client.getChainId(),
      nonce: nonce++,
      to: token,
      data: `0xa9059cbb${recipient}${amount}`,
      gas: 100_000n,
      ...fees,
    });
    await client.sendRawTransaction({ serializedTransaction });
  };
  for (const count of [1, 2, 17, 140]) {
    for (let index = 0; index < count; index++) await send(index);
    await devnet.mine();
    const number = numberToHex(await client.getBlockNumber());
    const { receiptsRoot: root } = blockSchema.parse(
      await ask(devnet.rpcUrl, "eth_getBlockByNumber", [number, false]),
    );
    const receipts = receiptsSchema.parse(
      await ask(devnet.rpcUrl, "eth_getBlockReceipts", [number]),
    );
    expect(receipts).toHaveLength(count);
    expect(verifyReceipts(receipts, root)).toEqual({ kind: "proven" });
    const withoutBlooms = receipts.map((receipt) => ({ ...receipt, logsBloom: zeroBloom }));
    expect(verifyReceipts(withoutBlooms, root)).toEqual({ kind: "proven" });
    expect(verifyReceipts(receipts.slice(1), root)).toEqual({ kind: "different" });
    const cut = receipts.map((receipt) => ({ ...receipt, logs: [] }));
    const hasLogs = receipts.some(({ logs }) => logs.length > 0);
    if (hasLogs) expect(verifyReceipts(cut, root)).toEqual({ kind: "different" });
    const foreign = receipts.map((receipt) => ({ ...receipt, type: "0x7e" }));
    expect(verifyReceipts(foreign, root)).toMatchObject({ kind: "unknown-form" });
  }
});

it("the bloom filter equals that of a real receipt", async () => {
  const devnet = await startChain();
  const hash = await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
  const { logs, logsBloom } = await devnet.client.getTransactionReceipt({ hash });
  expect(logs.length).toBeGreaterThan(0);
  expect(computeLogsBloom(logs)).toBe(logsBloom);
});
