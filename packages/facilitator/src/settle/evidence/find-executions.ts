import { RpcClosedError, RpcError, type RpcPool, type RpcRequester } from "@coinslot/chain";
import * as z from "zod";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { Execution } from "../../schemes/scheme.ts";
import { readAuthorizationStates } from "./authorization-states.ts";
import { claimsByScheme } from "./claims-by-scheme.ts";
import type { LateLogs } from "./late-logs.ts";

/** Blocks below the head from which executions are searched where no older block is known. */
export const maxSearchedBlocks = 100_000n;
/** Another node may be ahead by so many blocks. */
export const maxAhead = 64n;

/** A search for executions of payments, by any sender. */
interface Search {
  /** A pool's endpoints are asked one by one where the first one has no log of a used payment. */
  rpc: RpcRequester & Partial<Pick<RpcPool, "endpoints">>;
  payments: readonly OrderedPayment[];
  /** First block of each payment. Default: the one after the block that showed it as unused. */
  fromBlock?: ((payment: OrderedPayment) => bigint) | undefined;
  toBlock: bigint;
  /** Blocks on top after which nothing is taken back. */
  finalAfter: number;
  /** Makes used payments without a log `unknown` for a while. */
  lateLogs?: LateLogs | undefined;
}

/**
 * Finds payments that any sender executed, or that were cancelled, in some blocks: one query for
 * each token and range of blocks. A payment without either is missing in the result.
 *
 * A block showed the authorization as unused. A reorganisation may place an execution in the block
 * that replaces it, or one below. So a payment that is used by `toBlock`, and is not found, is
 * searched `finalAfter` blocks further back. A token's search begins at its lowest block. Where no
 * block has it, a machine that lags may have answered, or one that has no logs: the other endpoints
 * are asked, and its logs are awaited.
 *
 * @throws RpcError when the chain is unreachable, ZodError when it returns malformed data.
 */
export async function findExecutions(search: Search): Promise<Map<OrderedPayment, Execution>> {
  const { payments, toBlock } = search;
  const startOf = (payment: OrderedPayment) => firstBlockOf(payment, toBlock);
  const { fromBlock = startOf } = search;
  const found = await searchBlocks(search, fromBlock);
  const absent = payments.filter(
    (payment) => !isFound(found, payment) && fromBlock(payment) === startOf(payment),
  );
  if (absent.length === 0) return found;
  try {
    return new Map([...found, ...(await searchUsed({ ...search, payments: absent }))]);
  } catch (error) {
    if (!isNodesFault(error)) throw error;
    // Those that were found keep their outcome.
    for (const payment of absent) found.set(payment, { outcome: "unknown" });
    return found;
  }
}

/**
 * The first block that may have an execution of a payment: after one at whose end it was unused. A
 * node may have made that block up, far above the head: then, `maxSearchedBlocks` below the head.
 */
export function firstBlockOf({ payment }: OrderedPayment, head: bigint): bigint {
  const seen = BigInt(payment.unusedAtBlock ?? payment.inclusion?.blockNumber ?? 0);
  if (seen <= head + maxAhead) return seen + 1n;
  return head > maxSearchedBlocks ? head - maxSearchedBlocks : 0n;
}

/** Searches the used ones of these payments also in the blocks that may have been replaced. */
async function searchUsed(search: Search): Promise<Map<OrderedPayment, Execution>> {
  const { rpc, toBlock, finalAfter, lateLogs } = search;
  if (finalAfter === 0 && lateLogs === undefined) return new Map();
  const seen = search.payments.filter(({ payment }) => payment.unusedAtBlock !== undefined);
  if (seen.length === 0) return new Map();
  const states = await readAuthorizationStates({
    rpc,
    payments: seen.map(({ payment }) => payment),
    blockNumber: toBlock,
  });
  // A token that does not answer may have used them, and nodes keep old states for a while alone.
  const payments = seen.filter((_, index) => states[index] !== false);
  const from = (payment: OrderedPayment) => {
    const start = firstBlockOf(payment, toBlock) - BigInt(finalAfter);
    return start < 0n ? 0n : start;
  };
  const found = await searchBlocks({ ...search, payments }, from);
  for (const node of rpc.endpoints ?? []) {
    const lacking = payments.filter((payment) => !isFound(found, payment));
    if (lacking.length === 0) break;
    const more = await searchBlocks({ ...search, rpc: node, payments: lacking }, from).catch(
      ignore,
    );
    for (const [payment, execution] of more ?? []) {
      // A node that lacks old logs says no more than one that does not answer.
      const isSearched = execution.outcome !== "unknown" || execution.isUnsearched !== true;
      if (isSearched) found.set(payment, execution);
    }
  }
  for (const payment of payments) {
    if (found.has(payment)) continue;
    if (lateLogs?.mayCome(payment.payment.id)) found.set(payment, { outcome: "unknown" });
  }
  return found;
}

/** False where one endpoint has no log, or one that decides nothing: another may have more. */
function isFound(found: ReadonlyMap<OrderedPayment, Execution>, payment: OrderedPayment): boolean {
  return (found.get(payment)?.outcome ?? "unknown") !== "unknown";
}

/**
 * As `findExecutions`, in these very blocks. A node that has only the newer ones leaves the others'
 * payments `unknown`.
 */
export async function searchBlocks(
  { rpc, payments, toBlock }: Pick<Search, "rpc" | "payments" | "toBlock">,
  fromBlock: (payment: OrderedPayment) => bigint,
): Promise<Map<OrderedPayment, Execution>> {
  const found = new Map<OrderedPayment, Execution>();
  for (const [scheme, claims] of claimsByScheme(payments)) {
    const executions = await scheme.findExecutions({
      rpc,
      claims,
      fromBlock: ({ payment }) => fromBlock(payment),
      toBlock,
    });
    for (const [{ payment }, execution] of executions) found.set(payment, execution);
  }
  return found;
}

/**
 * `findExecutions` for callers whose other payments go on: returns `undefined` on a node's fault.
 */
export async function tryToFindExecutions(
  search: Search,
): Promise<Awaited<ReturnType<typeof findExecutions>> | undefined> {
  try {
    return await findExecutions(search);
  } catch (error) {
    if (isNodesFault(error)) return undefined;
    throw error;
  }
}

/** One endpoint's fault is no fault of the others. */
function ignore(error: unknown): undefined {
  if (!isNodesFault(error)) throw error;
}

/** Returns whether a node has returned an error, malformed data or nothing. */
export function isNodesFault(error: unknown): error is RpcError | z.ZodError {
  if (error instanceof RpcClosedError) return false;
  return error instanceof RpcError || error instanceof z.ZodError;
}
