import { type RpcEndpointHandle, RpcResponseError } from "@coinslot/chain";
import * as z from "zod";
import type { KnownToken } from "../store/known-token.ts";
import { TRANSFER_TOPIC } from "../transfer-log/transfer-topic.ts";
import { endpointProblem } from "./endpoint-problem.ts";
import { toQuantity } from "./get-logs.ts";

const receiptSchema = z.object({
  logs: z.array(z.looseObject({ address: z.string(), topics: z.array(z.string()) })),
});
const receiptsSchema = z.array(receiptSchema);
const blockSchema = z.object({ transactions: z.array(z.string()) });

/**
 * The transfers of tokens in one block, taken from the receipts of all its transactions: `eth_getBlockReceipts`, or one
 * receipt after the other where an endpoint does not have that. As `eth_getLogs` would give them.
 */
export async function readReceiptLogs(
  endpoint: RpcEndpointHandle,
  { block, tokens }: { block: number | string; tokens: readonly KnownToken[] },
): Promise<unknown[]> {
  const receipts = await readReceipts(endpoint, block);
  const addresses = new Set<string>(tokens.map(({ address }) => address));
  return receipts
    .flatMap(({ logs }) => logs)
    .filter(
      ({ address, topics }) =>
        addresses.has(address.toLowerCase()) && topics[0]?.toLowerCase() === TRANSFER_TOPIC,
    );
}

/**
 * The logs of all transactions of a block, by transaction. A node may have a block before it has the receipts, and give
 * a shorter list of them, or an empty one: the block itself says how many there are.
 */
export async function readReceipts(endpoint: RpcEndpointHandle, block: number | string) {
  const name = typeof block === "number" ? toQuantity(block) : block;
  const method = typeof block === "number" ? "eth_getBlockByNumber" : "eth_getBlockByHash";
  const [whole, together] = await endpoint.requestMany([
    { method, params: [name, false] },
    { method: "eth_getBlockReceipts", params: [name] },
  ]);
  if (whole?.ok === false) throw whole.error;
  const { data } = blockSchema.safeParse(whole?.result);
  if (data === undefined) throw behind(endpoint, name);
  const { transactions } = data;
  if (together?.ok) {
    const receipts = receiptsSchema.safeParse(together.result);
    if (receipts.data?.length === transactions.length) return receipts.data;
  } else if (!(together?.error instanceof RpcResponseError)) throw together?.error;
  const outcomes = await endpoint.requestMany(
    transactions.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
  );
  return outcomes.map((outcome) => {
    if (!outcome.ok) throw outcome.error;
    const receipt = receiptSchema.safeParse(outcome.result);
    if (!receipt.success) throw behind(endpoint, name);
    return receipt.data;
  });
}

function behind(endpoint: RpcEndpointHandle, block: string) {
  const details = `it does not have the transactions of block ${block}`;
  return endpointProblem(endpoint, { kind: "behind", details });
}
