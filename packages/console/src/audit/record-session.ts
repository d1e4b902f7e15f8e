import type { Operation, Operator } from "@coinslot/facilitator";
import type { Session } from "../sessions/session.ts";
import { createEntryBudget } from "./entry-budget.ts";

/** A sign-in, or a sign-out. Acts are in the audit log by themselves. */
export interface SessionEvent {
  operation: "session.open" | "session.close";
  outcome: "done" | "refused";
  session?: Session | undefined;
  /** Address of the peer, and the means. */
  argument: Record<string, unknown>;
  code?: string | undefined;
}

/**
 * Writes sign-ins into the audit log. It neither waits nor fails: a console shows a sick ledger,
 * too.
 */
export type RecordSession = (event: SessionEvent) => void;

/** Name of a session in the audit log. */
export function accountOf({ name, signedInBy }: Session): string {
  return `console ${name} (${signedInBy})`;
}

/**
 * Creates the writer. Strangers and readers cause entries as they like: each of them has a budget,
 * and the next entry counts those that were left out. Nothing of an operator is left out.
 *
 * @param options.now milliseconds of a clock
 */
export function createSessionRecorder(options: {
  operator: Operator;
  operations: ReadonlyMap<string, Operation>;
  onError: (error: unknown) => void;
  now: () => number;
}): RecordSession {
  const { operator, operations, onError, now } = options;
  const operation = operations.get("audit.record");
  const refusals = createEntryBudget({ now });
  const readers = createEntryBudget({ now });
  let last = Promise.resolve();

  function countOmitted({ outcome, session }: SessionEvent): number | undefined {
    if (outcome === "refused") return refusals.take();
    return session?.holder === "operator" ? 0 : readers.take();
  }

  return (event) => {
    const omitted = countOmitted(event);
    if (operation === undefined || omitted === undefined) return;
    const { session, argument, ...end } = event;
    const account = session && accountOf(session);
    const counted = omitted === 0 ? argument : { ...argument, omitted };
    const entry = { ...end, argument: counted, account };
    // One by one: each takes the lock of a SQLite ledger without a seller.
    last = last
      .then(async () => void (await operator.run(operation, entry)))
      .catch(onError)
      .catch(() => undefined);
  };
}
