import type { LedgerContext } from "../ledger-context.ts";
import type { RetentionTimes } from "../ledger-limits.ts";
import { archivePayments } from "./archive-payments.ts";
import { forgetPayments } from "./forget-payments.ts";
import { findSummedRoutes, forgetSoldNames } from "./forget-sold-names.ts";
import { pruneTransactions } from "./prune-transactions.ts";
import type { WalkStep } from "./walk.ts";

/** Rows and pages of one step: few enough to delay no writer. */
const rowsAtOnce = 50;
const pagesAtOnce = 50;

/** A step, to be called until it is done. */
export type RetentionStep = () => Promise<"again" | "done">;

/**
 * The walks of a pass over the old rows, in this order. Their bounds are those of its beginning.
 * The walk over the dictionary of names reads all of it, so few passes do.
 *
 * A payment that is archived meanwhile, here or by another process, is read by the second walk over
 * payments. So the names that they have kept are all that payments refer to.
 */
export function retentionSteps(
  ledger: LedgerContext,
  times: RetentionTimes,
  { withNames = true }: { withNames?: boolean } = {},
): RetentionStep[] {
  const { keepSignaturesMs, keepPaymentsMs, keepUndeliveredMs } = times;
  const now = ledger.now();
  // Nothing is older than the clock. PostgreSQL knows no time before that which is infinite.
  const timeBefore = (ms: number) => Math.max(0, now - ms);
  const before = timeBefore(keepSignaturesMs);
  const undeliveredBefore =
    keepUndeliveredMs === undefined ? undefined : timeBefore(keepUndeliveredMs);
  const forgetsNames = withNames && keepPaymentsMs !== undefined;
  const keptNames = new Set<number>();
  const limit = rowsAtOnce;
  const walk = (step: (after: string) => Promise<WalkStep>): RetentionStep => {
    let after = "";
    return async () => {
      const { after: next, keptNames: names } = await step(after);
      if (forgetsNames) for (const name of names) keptNames.add(name);
      after = next ?? "";
      return next === undefined ? "done" : "again";
    };
  };
  const steps = [
    walk((after) => archivePayments(ledger, { after, before, undeliveredBefore, limit })),
    walk((after) => pruneTransactions(ledger, { after, before, limit })),
  ];
  if (keepPaymentsMs !== undefined) {
    const forgotten = timeBefore(keepPaymentsMs);
    steps.push(walk((after) => forgetPayments(ledger, { after, before: forgotten, limit })));
    let name = 0;
    const forgetNames: RetentionStep = async () => {
      if (name === 0) for (const id of await findSummedRoutes(ledger)) keptNames.add(id);
      const wish = { after: name, before: forgotten, keptNames, limit };
      const next = await forgetSoldNames(ledger, wish);
      name = next ?? 0;
      return next === undefined ? "done" : "again";
    };
    if (forgetsNames) steps.push(forgetNames);
  }
  steps.push(async () => ((await giveSpaceBack(ledger)) ? "again" : "done"));
  return steps;
}

function giveSpaceBack({ write, dialect }: LedgerContext): Promise<boolean> {
  return write((transaction) => dialect.reclaimSpace(transaction, pagesAtOnce));
}
