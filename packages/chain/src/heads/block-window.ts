import type { BlockHeader } from "./block-header.ts";

/** The newest blocks of one chain, each the parent of the next. */
export interface BlockWindow {
  head(): BlockHeader | undefined;
  /** All of them, oldest first. */
  blocks(): readonly BlockHeader[];
  /**
   * Puts `blocks` (oldest first, linked) on top of their parent. Replaces all blocks when their
   * parent is not remembered. Returns the blocks that left the chain, oldest first.
   */
  put(blocks: readonly BlockHeader[]): BlockHeader[];
}

/** A window that remembers the last `size` blocks. */
export function createBlockWindow(size: number): BlockWindow {
  let blocks: readonly BlockHeader[] = [];
  return {
    head: () => blocks.at(-1),
    blocks: () => blocks,
    put(entered) {
      const parent = blocks.findIndex((block) => block.hash === entered[0]?.parentHash);
      const left = blocks.slice(parent + 1);
      blocks = [...blocks.slice(0, parent + 1), ...entered].slice(-size);
      return left;
    },
  };
}
