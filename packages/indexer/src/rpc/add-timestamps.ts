import { endpointProblem, type RpcEndpointHandle } from "@coinslot/chain";
import type { TransferBatch } from "../transfer-log/transfer-batch.ts";
import { readHeaders } from "./block-header.ts";

/**
 * Asks for the headers of those blocks of a batch whose logs came without the time, many in one
 * request.
 */
export async function addTimestamps(
  endpoint: RpcEndpointHandle,
  { blocks }: TransferBatch,
): Promise<void> {
  const missing = [...blocks].flatMap(([number, { timestampMs }]) =>
    timestampMs === undefined ? [number] : [],
  );
  if (missing.length === 0) return;
  for (const { number, hash, timestampMs } of await readHeaders(endpoint, missing)) {
    const block = blocks.get(number);
    if (block === undefined) continue;
    if (block.hash !== hash)
      throw endpointProblem(endpoint, {
        kind: "malformed",
        details: `its logs and its block ${number} differ`,
      });
    block.timestampMs = timestampMs;
  }
}
