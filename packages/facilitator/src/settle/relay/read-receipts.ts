import { RpcError, type RpcRequester, RpcUnavailableError } from "@coinslot/chain";
import {
  readReceipt,
  receiptCall,
  type TransactionReceipt,
} from "../../evm/transaction-receipt.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";

/** By transaction: a form's receipt, and a fault in the answer about a form. */
interface Receipts {
  receipts: Map<string, TransactionReceipt>;
  faults: Map<string, Error>;
}

/** @throws RpcUnavailableError when no node answers anything. */
export async function readReceipts(
  rpc: RpcRequester,
  open: readonly TrackedTransaction[],
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
  return { receipts, faults };
}

/**
 * Reads the receipts of transactions whose nonces are used, at every endpoint: the first one may
 * have no receipts, and be right about all else.
 */
export async function readReceiptsEverywhere(
  { network: { rpc } }: Relayer,
  transactions: readonly TrackedTransaction[],
): Promise<Map<string, TransactionReceipt>> {
  if (transactions.length === 0 || rpc.endpoints.length < 2) return new Map();
  const found = await Promise.all(
    rpc.endpoints.map(async (endpoint) => {
      try {
        return (await readReceipts(endpoint, transactions)).receipts;
      } catch (error) {
        if (error instanceof RpcError) return new Map<string, TransactionReceipt>();
        throw error;
      }
    }),
  );
  // The first endpoint is preferred.
  return new Map(found.reverse().flatMap((receipts) => [...receipts]));
}
