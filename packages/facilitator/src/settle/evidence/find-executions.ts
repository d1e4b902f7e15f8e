import { RpcError, type RpcRequester } from "@coinslot/chain";
import * as z from "zod";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { Execution } from "../../schemes/scheme.ts";
import { claimsByScheme } from "./claims-by-scheme.ts";

/**
 * Finds payments that any sender executed, or that were cancelled, in some blocks: one query for
 * each token and range of blocks. A payment without either is missing in the result.
 *
 * @param options.fromBlock of each payment. A token's search begins at its lowest.
 * @throws RpcError when the chain cannot be asked, ZodError when it returns rubbish.
 */
export async function findExecutions(options: {
  rpc: RpcRequester;
  payments: readonly OrderedPayment[];
  fromBlock: (payment: OrderedPayment) => bigint;
  toBlock: bigint;
}): Promise<Map<OrderedPayment, Execution>> {
  const { rpc, payments, fromBlock, toBlock } = options;
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
  options: Parameters<typeof findExecutions>[0],
): Promise<Awaited<ReturnType<typeof findExecutions>> | undefined> {
  try {
    return await findExecutions(options);
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}
