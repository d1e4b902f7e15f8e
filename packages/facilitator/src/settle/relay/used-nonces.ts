import * as z from "zod";
import type { Relayer } from "./relayer-context.ts";

const nonceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(Number);

/**
 * Number of the relayer's nonces that stand in blocks. A number beyond `next`, the first that we
 * have not used, would leave a gap that nothing passes. It counts only as far as two reads return
 * it.
 */
export async function countUsedNonces(
  { context, network, address, labels }: Relayer,
  next: number,
): Promise<number> {
  const { rpc } = network;
  const count = { method: "eth_getTransactionCount", params: [address, "latest"] };
  const used = nonceSchema.parse(await rpc.request(count));
  if (used <= next) return used;
  const again = nonceSchema.parse(await rpc.request(count));
  if (again !== used) {
    context.logger.warn({ ...labels, used, again }, "a node was wrong about the nonce");
  }
  return Math.min(used, again);
}
