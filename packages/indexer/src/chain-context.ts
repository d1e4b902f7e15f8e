import type { Clock } from "@coinslot/chain";
import type { Database } from "@coinslot/storage";
import type { ChainConfiguration } from "./configuration.ts";
import type { Progress } from "./history/progress.ts";
import type { IndexerLogger } from "./logger.ts";
import type { ChainEvidence } from "./proof/chain-evidence.ts";
import type { Tolerance } from "./rpc/tolerance.ts";
import type { KnownToken } from "./store/known-token.ts";
import type { IndexerSchema } from "./store/schema.ts";
import type { WriterLease } from "./store/writer-lease.ts";
import type { TrustedPool } from "./trusted-pool.ts";
import type { FirstReaders } from "./verify/first-readers.ts";
import type { Repair } from "./verify/repair.ts";

/** Context of following one chain. */
export interface ChainContext {
  chain: ChainConfiguration;
  tokens: readonly KnownToken[];
  pool: TrustedPool;
  /** The endpoints that most others contradict about a final block; the pool reads none there. */
  outvoted: Set<number>;
  database: Database<IndexerSchema>;
  lease: WriterLease;
  logger: IndexerLogger;
  clock: Clock;
  progress: Progress;
  /** The most logs that each endpoint has given for one block; see `readBlocks`. */
  maxLogs: Map<number, number>;
  evidence: ChainEvidence;
  firstReaders: FirstReaders;
  /**
   * Counts rewrites of final blocks. A second reading that began before one must not be written.
   */
  rewrites: { count: number };
  /** From 0 up to but not including 1. */
  random: () => number;
  onRepair: (repair: Repair) => void;
  /** The tolerance of the last question asked at the live end. */
  toleranceOf: (question: string) => Tolerance;
}
