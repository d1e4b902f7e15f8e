import { wrapUint256 } from "../store/wrap-uint256.ts";
import type { TransferBatch } from "./transfer-batch.ts";

/** Batches of different blocks, in ascending order, as one. */
export function joinBatches(batches: readonly TransferBatch[]): TransferBatch {
  const [only] = batches;
  if (batches.length === 1 && only !== undefined) return only;
  const gains = new Map<number, Map<string, bigint>>();
  for (const batch of batches) {
    for (const [tokenId, ofBatch] of batch.gains) {
      const ofToken = gains.get(tokenId) ?? new Map<string, bigint>();
      gains.set(tokenId, ofToken);
      for (const [address, gain] of ofBatch)
        ofToken.set(address, wrapUint256((ofToken.get(address) ?? 0n) + gain));
    }
  }
  return {
    rows: batches.flatMap(({ rows }) => rows),
    blocks: new Map(batches.flatMap(({ blocks }) => [...blocks])),
    gains,
    last: batches.findLast(({ last }) => last !== undefined)?.last,
    oddities: batches.flatMap(({ oddities }) => oddities),
    faults: batches.flatMap(({ faults }) => faults),
  };
}
