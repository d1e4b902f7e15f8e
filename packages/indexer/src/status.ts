/**
 * Health of a served chain or token: `degraded` answers, but late; `unhealthy` must not be relied
 * upon.
 */
export type Health = "healthy" | "degraded" | "unhealthy";

/**
 * State of a chain.
 *
 * - `waiting`: no process has followed it yet; the writing process has just started, or cannot
 *   reach it.
 * - `history`: final blocks are being read, range by range.
 * - `live`: it follows the head, block by block.
 * - `stopped`: a reorganisation was deeper than a rewind takes back without a command. It is not
 *   served or written until its endpoints return to the indexed chain, or a command rewinds it.
 */
export type ChainState = "waiting" | "history" | "live" | "stopped";

export interface TokenStatus {
  name: string;
  /**
   * The last block up to which all blocks from the start block on are indexed; undefined: nothing
   * yet.
   */
  indexedTo: number | undefined;
  /** The last block up to which all blocks were read twice, or proven; undefined: nothing yet. */
  verifiedTo: number | undefined;
  /** Number of blocks that it is behind the head, as that of the chain. */
  lagBlocks: number | undefined;
  health: Health;
}

export interface ChainStatus {
  name: string;
  chainId: number;
  state: ChainState;
  health: Health;
  /** Reason for which it is not healthy, for an operator. */
  problem: string | undefined;
  /** The newest block reported by an endpoint, and the last one that cannot be replaced. */
  head: number | undefined;
  finalized: number | undefined;
  /**
   * Number of blocks that the slowest token is behind the head; undefined where that is not known,
   * also while the writer records no head.
   */
  lagBlocks: number | undefined;
  /** Time since something new was indexed, on the database's clock. */
  sinceProgressMs: number | undefined;
  /**
   * Latency of the fastest endpoint; undefined before the first request, and where this process has
   * not asked.
   */
  rpcLatencyMs: number | undefined;
  /** Provability of this chain's blocks by receipts; undefined until one was read. */
  proofs: "provable" | "unprovable" | undefined;
  /** Wrongly stored blocks that a second reading found and mended. */
  repairedBlocks: number;
  /** The lowest final block that is another one at every endpoint read; undefined: none. */
  doubtedFrom: number | undefined;
  /** While in history: transfers per second, and the time left. */
  eventsPerSecond: number | undefined;
  secondsLeft: number | undefined;
  tokens: TokenStatus[];
}

export interface IndexerStatus {
  health: Health;
  /** `writer` follows the chains; `standby` serves, and takes over when the writer is gone. */
  role: "writer" | "standby";
  database: "healthy" | "unhealthy";
  chains: ChainStatus[];
}
