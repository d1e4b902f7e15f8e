import { pruneDeliveries } from "@coinslot/storage";
import type { LedgerContext } from "../ledger-context.ts";
import type { RetentionTimes } from "../ledger-limits.ts";
import { readCommonTime } from "../queries/common-time.ts";
import { type ArchiveOptions, archivePayments } from "./archive-payments.ts";
import { closeOrphans, type EntryPlace } from "./close-entries.ts";
import { forgetPayers } from "./forget-payers.ts";
import { forgetPayments } from "./forget-payments.ts";
import { findSummedRoutes, forgetSoldNames } from "./forget-sold-names.ts";
import { pruneTransactions } from "./prune-transactions.ts";
import { forgetVisits, sumVisitsOfPast } from "./store-visits.ts";
import type { WalkStep } from "./walk.ts";

/** Rows and pages of one step: few enough to delay no writer. */
const rowsAtOnce = 50;
const pagesAtOnce = 50;
const day = 86_400_000;
/** Retention of the outbox: of what was delivered, and of what never was. */
const outboxTimes = { deliveredMs: 30 * day, deadMs: 90 * day };

/** Days that counts of visits are kept: a year, and the same weeks of the one before. */
export const keepVisitsDays = 400;

/** A step, to be called until it is done. */
export type RetentionStep = () => Promise<"again" | "done">;

/**
 * The walks of a pass over the old rows, in this order. Their bounds are those of its first step,
 * by the earlier one of this process's clock and the database's. A clock that is ahead ends
 * nothing. Those over payers and over the dictionary of names read all of them, so few passes do.
 *
 * A payment that is archived meanwhile, here or by another process, is read by the second walk over
 * payments. So the names that they have kept are all that payments refer to.
 */
export function retentionSteps(
  ledger: LedgerContext,
  times: RetentionTimes,
  { isWhole = true }: { isWhole?: boolean } = {},
): RetentionStep[] {
  const { keepPaymentsMs } = times;
  let bounds: Bounds | undefined;
  const readBounds = async () => {
    bounds ??= boundsAt(await readCommonTime(ledger), times);
    return bounds;
  };
  const forgetsNames = isWhole && keepPaymentsMs !== undefined;
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
    walk(async (after) => archivePayments(ledger, { after, limit, ...(await readBounds()) })),
    walk(async (after) => pruneTransactions(ledger, { after, limit, ...(await readBounds()) })),
  ];
  if (isWhole) {
    let payer = "";
    steps.push(async () => {
      const next = await forgetPayers(ledger, { after: payer, limit });
      payer = next ?? "";
      return next === undefined ? "done" : "again";
    });
    const today = async () => Math.floor((await readBounds()).now / day);
    steps.push(async () => {
      // A process whose clock is behind still adds to yesterday's.
      const beforeDay = (await today()) - 1;
      return (await sumVisitsOfPast(ledger, { beforeDay, limit })) ? "again" : "done";
    });
    steps.push(async () => {
      const beforeDay = (await today()) - keepVisitsDays;
      return (await forgetVisits(ledger, { beforeDay })) ? "again" : "done";
    });
  }
  if (keepPaymentsMs !== undefined) {
    const readForgotten = async () => timeBefore((await readBounds()).now, keepPaymentsMs);
    steps.push(
      walk(async (after) =>
        forgetPayments(ledger, { after, limit, before: await readForgotten() }),
      ),
    );
    let place: EntryPlace | undefined;
    steps.push(async () => {
      const after = place ?? { posted_at: 0, id: 0 };
      place = await closeOrphans(ledger, { after, before: await readForgotten(), limit });
      return place === undefined ? "done" : "again";
    });
    let name = 0;
    const forgetNames: RetentionStep = async () => {
      if (name === 0) for (const id of await findSummedRoutes(ledger)) keptNames.add(id);
      const wish = { after: name, before: await readForgotten(), keptNames, limit };
      const next = await forgetSoldNames(ledger, wish);
      name = next ?? 0;
      return next === undefined ? "done" : "again";
    };
    if (forgetsNames) steps.push(forgetNames);
  }
  steps.push(async () =>
    (await pruneDeliveries(ledger, { ...outboxTimes, limit })) ? "again" : "done",
  );
  steps.push(async () => ((await giveSpaceBack(ledger)) ? "again" : "done"));
  return steps;
}

type Bounds = Pick<ArchiveOptions, "now" | "before" | "undeliveredBefore">;

function boundsAt(now: number, { keepSignaturesMs, keepUndeliveredMs }: RetentionTimes): Bounds {
  return {
    now,
    before: timeBefore(now, keepSignaturesMs),
    undeliveredBefore:
      keepUndeliveredMs === undefined ? undefined : timeBefore(now, keepUndeliveredMs),
  };
}

/** Nothing is older than the clock. PostgreSQL knows no time before that which is infinite. */
function timeBefore(now: number, ms: number): number {
  return Math.max(0, now - ms);
}

function giveSpaceBack({ write, dialect }: LedgerContext): Promise<boolean> {
  return write((transaction) => dialect.reclaimSpace(transaction, pagesAtOnce));
}
