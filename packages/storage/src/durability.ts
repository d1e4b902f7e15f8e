/**
 * What a transaction survives once it is told as done.
 *
 * - `disk`: a loss of power.
 * - `process`: the end of this process. If the machine, or the database's server, fails within the next moment, the
 *   transaction may be undone, and then so is everything that was committed after it: nothing on the disk ever stands
 *   upon something that is not.
 */
export type Durability = "disk" | "process";

/** How a transaction ends. */
export interface TransactionOptions {
  /** Default: `disk`, or `process` in a database that was opened as not durable. */
  durability?: Durability | undefined;
  /** Called once everybody sees what was written, which may be before it is on the disk. Must not throw. */
  onCommit?: (() => void) | undefined;
}
