import { type OperatorPlace, runOperation } from "../operators/run-operation.ts";
import { readStopChange, type StopChange, type StopReport } from "./stop.ts";
import { stopsOperation } from "./stops-operation.ts";

/**
 * Sets or clears a stop switch of a ledger, from outside of its sellers. On PostgreSQL they see it
 * in the table. The process that holds a SQLite file is asked by its socket. Without one, the file
 * is taken for the change.
 *
 * @example
 * ```ts
 * await changeStops({
 *   url: "sqlite:./coinslot.db",
 *   change: {
 *     operation: "set",
 *     target: { kind: "network", name: "eip155:9745" },
 *     reason: "maintenance until noon",
 *   },
 * });
 * ```
 *
 * @throws ConfigurationError for a malformed change, DatabaseError where the ledger cannot be
 * changed, Error where its holder refuses
 */
export async function changeStops(options: {
  /** `sqlite:./file.db`, `postgres://…`, or a seller that serves its operator over HTTP. */
  url: OperatorPlace;
  change: StopChange;
}): Promise<StopReport> {
  return runOperation(options.url, stopsOperation, readStopChange(options.change));
}
