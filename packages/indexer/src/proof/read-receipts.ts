import {
  endpointProblem,
  type RpcEndpointHandle,
  type RpcOutcome,
  RpcResponseError,
} from "@coinslot/chain";
import * as z from "zod";
import { type BlockHeader, headerOf } from "../rpc/block-header.ts";
import { toQuantity } from "../rpc/get-logs.ts";
import type { KnownToken } from "../store/known-token.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";
import { type ChainEvidence, isOddBlock, noteBloom, noteVerdict } from "./chain-evidence.ts";
import { verifyReceipts } from "./receipts-root.ts";

const receiptSchema = z.looseObject({
  blockHash: z.string().optional(),
  logs: z.array(z.looseObject({ address: z.string(), topics: z.array(z.string()) })),
});
const receiptsSchema = z.array(receiptSchema);
const transactionsSchema = z.object({ transactions: z.array(z.string()) });

type ReceiptLog = z.output<typeof receiptSchema>["logs"][number];

/** A block by its receipts. */
export interface BlockReceipts {
  header: BlockHeader;
  /** Logs of every contract, in their order. */
  logs: ReceiptLog[];
  /**
   * True if the receipts have the root that the header names. Without it they are complete by their
   * number alone.
   */
  isProven: boolean;
}

export interface ReceiptsQuestion {
  /** By its number or its hash. */
  block: number | string;
  evidence: ChainEvidence;
}

/** The two calls that `receiptsOf` reads, to be sent in one request, alone or with others. */
export function receiptsCalls(block: number | string) {
  const name = typeof block === "number" ? toQuantity(block) : block;
  const method = typeof block === "number" ? "eth_getBlockByNumber" : "eth_getBlockByHash";
  return [
    { method, params: [name, false] },
    { method: "eth_getBlockReceipts", params: [name] },
  ];
}

/**
 * Reads a block by the receipts of all its transactions, and compares them with the header's
 * `receiptsRoot`. A node may have a block before it has its receipts, and return fewer. A gateway
 * may ask another node for them. Where the receipts are not those of the block, throws an error
 * that makes the pool ask the next endpoint. If the same ones keep coming, they are taken as
 * unproven.
 */
export async function readReceipts(
  endpoint: RpcEndpointHandle,
  question: ReceiptsQuestion,
): Promise<BlockReceipts> {
  const outcomes = await endpoint.requestMany(receiptsCalls(question.block));
  return receiptsOf(endpoint, question, outcomes);
}

/**
 * Reads the outcomes of `receiptsCalls`. Asks for one receipt after the other where an endpoint
 * does not have all.
 */
export async function receiptsOf(
  endpoint: RpcEndpointHandle,
  { block, evidence }: ReceiptsQuestion,
  [whole, together]: readonly (RpcOutcome | undefined)[],
): Promise<BlockReceipts> {
  const header = headerOf(endpoint, whole, block);
  const { data } = transactionsSchema.safeParse(whole?.ok ? whole.result : undefined);
  if (data === undefined) throw withoutReceipts(endpoint, block);
  const { transactions } = data;
  const receipts =
    takeAll(together, transactions.length) ?? (await readEach(endpoint, { block, transactions }));
  const foreign = receipts.find((each) => (each.blockHash ?? header.hash) !== header.hash);
  if (foreign !== undefined) throw withoutReceipts(endpoint, block);
  const logs = receipts.flatMap((receipt) => receipt.logs);
  const verdict =
    header.receiptsRoot === undefined
      ? ({ kind: "unknown-form", reason: "no root of the receipts" } as const)
      : verifyReceipts(receipts, header.receiptsRoot);
  // The root of no receipts says nothing of their form.
  if (receipts.length > 0) noteVerdict(evidence, verdict, header.hash);
  const isRefused = verdict.kind === "different" && evidence.receipts !== "unprovable";
  if (isRefused && !isOddBlock(evidence, header.hash, receipts))
    throw endpointProblem(endpoint, {
      kind: "malformed",
      details: `its receipts of block ${block} have another root than the block names`,
    });
  noteBloom(evidence, header.logsBloom, logs[0]);
  return { header, logs, isProven: verdict.kind === "proven" };
}

/** The transfers of tokens among the logs of a block, as `eth_getLogs` would return them. */
export function transfersAmong(
  logs: readonly ReceiptLog[],
  tokens: readonly KnownToken[],
): ReceiptLog[] {
  const addresses = new Set<string>(tokens.map(({ address }) => address));
  return logs.filter(
    ({ address, topics }) =>
      addresses.has(address.toLowerCase()) && topics[0]?.toLowerCase() === transferTopic,
  );
}

function takeAll(outcome: RpcOutcome | undefined, count: number) {
  if (outcome?.ok) {
    const receipts = receiptsSchema.safeParse(outcome.result);
    return receipts.data?.length === count ? receipts.data : undefined;
  }
  if (!(outcome?.error instanceof RpcResponseError)) throw outcome?.error;
  return undefined;
}

async function readEach(
  endpoint: RpcEndpointHandle,
  { block, transactions }: { block: number | string; transactions: readonly string[] },
) {
  const outcomes = await endpoint.requestMany(
    transactions.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
  );
  return outcomes.map((outcome) => {
    if (!outcome.ok) throw outcome.error;
    const receipt = receiptSchema.safeParse(outcome.result);
    if (!receipt.success) throw withoutReceipts(endpoint, block);
    return receipt.data;
  });
}

function withoutReceipts(endpoint: RpcEndpointHandle, block: number | string) {
  const details = `it does not have the transactions of block ${block}`;
  return endpointProblem(endpoint, { kind: "behind", details });
}
