import { createHash } from "node:crypto";
import { createBloomTest } from "./logs-bloom.ts";
import type { ReceiptsVerdict } from "./receipts-root.ts";

/**
 * Evidence from the blocks of a chain, which decides the accepted kinds of proof. Kept by one
 * process. A restart learns it anew from the first blocks, but for receipts that proved blocks.
 */
export interface ChainEvidence {
  /**
   * `real`: a block with logs had their bits in its filter. `none`: it lacked them; then no filter
   * of this chain proves anything any more. Filters of zeros prove nothing, and show nothing
   * either: one endpoint may leave them out.
   */
  blooms: "unknown" | "real" | "none";
  /**
   * `provable`: receipts had the root of their block. `unprovable`: they never had, or have a form
   * of the chain's own; then receipts are complete by their number alone.
   */
  receipts: "unknown" | "provable" | "unprovable";
  /** Blocks whose receipts had another root, while none had the right one. */
  differentRoots: Set<string>;
  /**
   * The last receipts of a block that had another root, and the number of times they came. The
   * oldest blocks are forgotten.
   */
  differentReceipts: Map<string, { digest: string; times: number }>;
}

/** Number of blocks that shows a property of the chain; one node may be wrong. */
const rootsUntilUnprovable = 3;
/**
 * A chain may leave transactions of its own out of the root of some blocks. There the same receipts
 * keep coming.
 */
const timesUntilOdd = 4;
const maxOddBlocks = 64;

/** `proofs`: the stored evidence of receipts. One endpoint's false ones must not lower it again. */
export function createChainEvidence(proofs?: "provable" | "unprovable" | null): ChainEvidence {
  return {
    blooms: "unknown",
    receipts: proofs === "provable" ? "provable" : "unknown",
    differentRoots: new Set(),
    differentReceipts: new Map(),
  };
}

/** Learns from a log, by any contract, and the bloom filter of its block; undefined: zeros. */
export function noteBloom(
  evidence: ChainEvidence,
  logsBloom: string | undefined,
  log: { address: string } | undefined,
): void {
  if (log === undefined || logsBloom === undefined || evidence.blooms !== "unknown") return;
  if (isHex(log.address))
    evidence.blooms = createBloomTest([log.address])(logsBloom) ? "real" : "none";
}

/** Learns from a comparison of receipts with the root of their block. */
export function noteVerdict(
  evidence: ChainEvidence,
  verdict: ReceiptsVerdict,
  blockHash: string,
): void {
  if (verdict.kind === "proven") evidence.receipts = "provable";
  if (evidence.receipts !== "unknown") return;
  if (verdict.kind === "different") evidence.differentRoots.add(blockHash);
  const isHopeless =
    verdict.kind === "unknown-form" || evidence.differentRoots.size >= rootsUntilUnprovable;
  if (isHopeless) evidence.receipts = "unprovable";
}

/**
 * Records receipts with another root. Returns whether that is a property of their block: unproven,
 * and not a node's fault.
 */
export function isOddBlock(
  { differentReceipts }: ChainEvidence,
  blockHash: string,
  receipts: unknown,
): boolean {
  const digest = createHash("sha256").update(JSON.stringify(receipts)).digest("base64");
  const before = differentReceipts.get(blockHash);
  const times = before?.digest === digest ? before.times + 1 : 1;
  differentReceipts.delete(blockHash);
  differentReceipts.set(blockHash, { digest, times });
  const [oldest] = differentReceipts.keys();
  if (oldest !== undefined && differentReceipts.size > maxOddBlocks)
    differentReceipts.delete(oldest);
  return times >= timesUntilOdd;
}

function isHex(text: string): text is `0x${string}` {
  return text.startsWith("0x");
}
