import type { BlockHeader } from "./block-header.ts";

/** Change of the chain, or of its visibility. Blocks are listed oldest first. */
export type BlockEvent =
  /** New blocks on top of the head; all of them, also those between two polls. */
  | { type: "advanced"; head: BlockHeader; entered: readonly BlockHeader[] }
  /** The newest blocks were replaced by others. */
  | {
      type: "reorganised";
      head: BlockHeader;
      left: readonly BlockHeader[];
      entered: readonly BlockHeader[];
    }
  /** A head without a link to the known blocks. Subscribers must reconcile with the chain. */
  | { type: "reset"; head: BlockHeader; reason: "missed-blocks" | "deep-reorganisation" }
  /** The head could not be read. One event per outage. */
  | { type: "unreachable"; error: unknown }
  /** The first answer after an outage. Events for the blocks in between follow. */
  | { type: "reachable" };

export type BlockListener = (event: BlockEvent) => void | Promise<void>;
