import {
  blockByNumber,
  blockHeaderSchema,
  RpcError,
  type RpcRequester,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import {
  readReceipt,
  receiptCall,
  type TransactionReceipt,
} from "../../evm/transaction-receipt.ts";
import { maxAhead } from "../evidence/find-executions.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";
import { withinTime } from "./within-time.ts";

/** By transaction: a form's receipt, and a fault in the answer about a form. */
interface Receipts {
  receipts: Map<string, TransactionReceipt>;
  faults: Map<string, Error>;
}

/**
 * @param head number of a block of the chain, as new as it is known
 * @throws RpcUnavailableError when no node answers anything.
 */
export async function readReceipts(
  rpc: RpcRequester,
  open: readonly TrackedTransaction[],
  head: bigint,
): Promise<Receipts> {
  const asked = open.flatMap(({ id, broadcasts }) => broadcasts.map(({ hash }) => ({ id, hash })));
  const outcomes = await rpc.requestMany(asked.map(({ hash }) => receiptCall(hash)));
  const receipts = new Map<string, TransactionReceipt>();
  const faults = new Map<string, Error>();
  let unavailable: RpcUnavailableError | undefined;
  let isAnswered = false;
  for (const [index, { id, hash }] of asked.entries()) {
    const { receipt, fault } = readReceipt(hash, outcomes[index]);
    if (receipt) receipts.set(id, receipt);
    if (fault) faults.set(id, fault);
    if (fault instanceof RpcUnavailableError) unavailable = fault;
    else isAnswered = true;
  }
  if (unavailable !== undefined && !isAnswered) throw unavailable;
  await refuseFar(rpc, { receipts, faults }, head);
  return { receipts, faults };
}

/**
 * Makes faults of receipts of blocks far above the node's own head. Such a transaction would count
 * as included until the chain is as high. The head is read only where the known one is far below.
 */
async function refuseFar(
  rpc: RpcRequester,
  { receipts, faults }: Receipts,
  known: bigint,
): Promise<void> {
  const numbers = [...receipts.values()].map(({ blockNumber }) => BigInt(blockNumber));
  if (numbers.every((number) => number <= known + maxAhead)) return;
  const head = await readHead(rpc, known);
  for (const [id, { blockNumber }] of receipts) {
    if (BigInt(blockNumber) <= head + maxAhead) continue;
    receipts.delete(id);
    const message = `A node at block ${head} returned a receipt of block ${blockNumber}`;
    faults.set(id, new z.ZodError([{ code: "custom", path: ["blockNumber"], message }]));
  }
}

/** A node that returns no head makes no receipt plausible. */
async function readHead(rpc: RpcRequester, known: bigint): Promise<bigint> {
  try {
    return blockHeaderSchema.parse(await rpc.request(blockByNumber("latest"))).number;
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return known;
    throw error;
  }
}

/**
 * Reads the receipts of transactions that take long, at every endpoint: the first one may have no
 * receipts, and be right about all else. Or it may count too few nonces.
 */
export async function readReceiptsEverywhere(
  { context: { clock }, network: { rpc, watcher } }: Relayer,
  transactions: readonly TrackedTransaction[],
  maxMs: number,
): Promise<Map<string, TransactionReceipt>> {
  if (transactions.length === 0 || rpc.endpoints.length < 2) return new Map();
  const head = watcher.latest()?.number ?? 0n;
  const reading = rpc.endpoints.map(async (endpoint) => {
    try {
      return (await readReceipts(endpoint, transactions, head)).receipts;
    } catch (error) {
      if (error instanceof RpcError) return undefined;
      throw error;
    }
  });
  const found = await withinTime(clock, maxMs, reading);
  // The first endpoint is preferred.
  return new Map(found.toReversed().flatMap((receipts) => [...(receipts ?? [])]));
}
