/**
 * Durability of a transaction once it has resolved: the faults that it survives.
 *
 * - `disk`: a loss of power.
 * - `process`: the end of this process. A fault of the machine or the database's server within the
 *   next moment may undo it. Everything that was committed after it is then undone too. Nothing on
 *   the disk ever depends on a transaction that is not.
 */
export type Durability = "disk" | "process";

/** Options of a transaction's commit. */
export interface TransactionOptions {
  /** Default: `disk`, or `process` in a database that was opened as not durable. */
  durability?: Durability | undefined;
  /**
   * Called once the writes are visible to all, which may be before they are on the disk. Must not
   * throw.
   */
  onCommit?: (() => void) | undefined;
}
