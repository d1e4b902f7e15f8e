import { RpcResponseError, RpcUnavailableError } from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import * as z from "zod";
import type { SettlementNetwork } from "../context.ts";
import type { Relayer } from "./relayer-context.ts";

const nonceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(Number);

/**
 * Largest gap of nonces that is filled, and the largest lead over our own nonces that two reads
 * suffice for. Dropped transactions leave a gap of those in flight.
 */
export const maxGap = 256;
/** Further reads, all of which have to agree, for a number further ahead. */
const farReads = 4;

/**
 * Number of the relayer's nonces that stand in blocks. A number beyond `next`, the first that we
 * have not used, would leave a gap that nothing passes. It counts only as far as two reads return
 * it, of the right chain; one far beyond, as far as five do. A gateway may send some requests to
 * nodes of another chain.
 */
export async function countUsedNonces(
  { context, network, address, labels }: Relayer,
  next: number,
): Promise<number> {
  const { rpc } = network;
  const count = { method: "eth_getTransactionCount", params: [address, "latest"] };
  let used = nonceSchema.parse(await rpc.request(count));
  const reads = used - next > maxGap ? farReads : 1;
  for (let read = 0; read < reads && used > next; read += 1) {
    const chainId = nonceSchema.parse(await rpc.request({ method: "eth_chainId" }));
    const again =
      chainId === rpc.chainId ? nonceSchema.parse(await rpc.request(count)) : Math.min(used, next);
    if (again !== used) {
      context.logger.warn({ ...labels, used, again }, "a node was wrong about the nonce");
    }
    used = Math.min(used, again);
  }
  return used;
}

/**
 * The newest block by which the nonces from `nonce` on are unused. A node that lags cannot answer
 * for that block. `undefined`: some are used, or no node answers.
 */
export async function findBlockBefore(
  { rpc, watcher, times }: SettlementNetwork,
  { address, nonce }: { address: Address; nonce: number },
): Promise<number | undefined> {
  const { number } = await watcher.read(times.resendMs());
  const params = [address, `0x${number.toString(16)}`];
  try {
    const count = await rpc.request(
      { method: "eth_getTransactionCount", params },
      { minBlock: number },
    );
    return nonceSchema.parse(count) <= nonce ? Number(number) : undefined;
  } catch (error) {
    // A node may have no state of that block.
    if (error instanceof RpcResponseError || error instanceof RpcUnavailableError) return undefined;
    throw error;
  }
}
