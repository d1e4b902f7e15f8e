import type { Head } from "../rpc/read-head.ts";
import type { BlockId } from "../store/block-id.ts";

/** Result of a poll of a chain, compared with the window. */
export type SyncEvent =
  /**
   * The head is in the window, or the endpoint lags or prefers a fork no longer than the indexed
   * chain.
   */
  | { type: "unchanged"; head: Head }
  /** Blocks on top of the window, oldest first, each the child of the one before. */
  | { type: "advanced"; head: Head; blocks: readonly BlockId[] }
  /** The blocks of the window above `ancestor` are not part of the chain. */
  | { type: "reorganised"; head: Head; ancestor: BlockId }
  /** The whole window is final, and many final blocks above it are missing. */
  | { type: "fell-behind"; head: Head }
  /**
   * The chain has another block in place of a final one, which is `replaced`. It is the newest,
   * `base`, or an older one where the head is below it.
   */
  | { type: "beyond-finality"; head: Head; base: BlockId; replaced: BlockId; found: string };
