import type { BlockHeader } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { LostPayment } from "../../ledger/maintenance/close-payments.ts";
import type { KnownBlock } from "../../ledger/transactions/undo-blocks.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { FoundExecutions } from "../evidence/found-executions.ts";
import type { LateLogs } from "../evidence/late-logs.ts";
import type { OverdueCursors, OverdueSearches } from "./end-overdue.ts";

export interface BlockWatchOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  /** Called when transactions that were settled are open again. */
  onReorg: () => void;
  /** Called with the head after each look at it. */
  onLook: (head: BlockHeader) => Promise<void>;
}

/** State of the process that follows the blocks of a network. */
export interface WatchContext extends BlockWatchOptions {
  /** Held while this process is the one that watches. */
  lease: Lease | undefined;
  /** Block up to which failed payments have been looked for. A reorganisation sets it back. */
  searchedTo: Map<string, bigint>;
  /** Those of them whose older blocks no node has shown: they are asked for again at this time. */
  searchAgainAt: Map<string, number>;
  /** What the last looks have found: none searches for it again at the same head. */
  found: FoundExecutions;
  /** The failed payment after which the next round goes on. An authorization may never expire. */
  resumeAfter: string;
  /**
   * Failed payments that are used, by no log: late ones may explain them before they are closed.
   */
  closingLogs: LateLogs;
  /**
   * The endpoints are asked for ends of failed payments no sooner than this. By page: the payment
   * before it is its key.
   */
  nextEndsAt: Map<string, number>;
  /** Set while they are asked: one of them may be slow, and nothing else waits for it. */
  closing: Promise<void> | undefined;
  /** Set while failed payments are searched: the first endpoint may be slow, too. */
  searching: Promise<void> | undefined;
  /** The head that is searched up to now, and the block up to which that counts so far. */
  search: { head: bigint; keptTo: bigint } | undefined;
  /** Aborted by `RpcClosedError` when the watch stops. */
  stopping: AbortSignal;
  /** Called with closed payments that had been final. */
  onLost: (lost: readonly LostPayment[]) => void;
  /** Time of the last look-up that found a failed payment which any sender may still execute. */
  failedAt: number | undefined;
  /** Time since when queued payments past their validity have been waiting for their end. */
  overdueSince: number | undefined;
  overdueAfter: OverdueCursors;
  explaining: OverdueSearches;
  /** Blocks that have left the chain since the last round. */
  left: KnownBlock[];
  /** Blocks known to be canonical. A block that came and went between two polls is not. */
  canonical: Set<Hex>;
  /** Blocks with payments that are not final, and when this process has found them. */
  seenAt: ReadonlyMap<Hex, number>;
  /** Those of them that are far above the head, and since when. */
  farSince: ReadonlyMap<Hex, number>;
  /**
   * The comparison of final blocks with the chain: due after a reorganisation that may have been
   * deeper than final, and at the begin of a lease. `nextAt`: not before this time. `isUnsure`:
   * blocks were missed since `checkedAt`, the end of the last one. `pauseMs`: before the next try,
   * where the last one decided nothing.
   */
  deep: { isDue: boolean; nextAt: number; isUnsure: boolean; checkedAt: number; pauseMs: number };
  /** The newest final block that was read for its time. */
  finalBlock: { number: bigint; timestamp: bigint } | undefined;
  nextLook: { at: number; cancel: (() => void) | undefined };
  /** Time of the last read of the head. */
  lookedAt: number;
  /** A look is reading the head. */
  isLooking: boolean;
  isStopped: boolean;
  /** Compares the ledger with the chain. */
  follow: () => void;
}
