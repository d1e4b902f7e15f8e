import type { Wire } from "./wire.ts";
import { createX402V1, exposedByX402V1 } from "./x402-v1.ts";
import { exposedByX402V2, x402V2 } from "./x402-v2.ts";

/**
 * Creates every wire of a gate, in their order in a 402 answer. The only file outside a wire's own
 * that imports one.
 */
export function createWires(options: { legacyNetworkNames: boolean }): readonly Wire[] {
  return [x402V2, createX402V1(options)];
}

/** Headers of answers that a page on another origin may read, whichever wires a gate has. */
export const exposedHeaders: readonly string[] = [...exposedByX402V2, ...exposedByX402V1];
