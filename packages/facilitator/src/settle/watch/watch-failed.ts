import { closePayments } from "../../ledger/maintenance/close-payments.ts";
import type { ConcludedPayment } from "../../ledger/payments/ledger-payment.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { findFailed } from "../../ledger/queries/find-watched.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { firstBlockOf, tryToFindExecutions } from "../evidence/find-executions.ts";
import { poolWithSignal } from "../evidence/with-signal.ts";
import { readFinalBlock } from "./final-block.ts";
import { findEnds } from "./find-ends.ts";
import type { WatchContext } from "./watch-context.ts";

/** The part of the watch over blocks that the watch over failed payments needs. */
export interface FailedWatch
  extends Pick<
    WatchContext,
    | "searchedTo"
    | "searchAgainAt"
    | "found"
    | "resumeAfter"
    | "failedAt"
    | "finalBlock"
    | "closingLogs"
    | "nextEndsAt"
    | "closing"
    | "searching"
    | "search"
    | "stopping"
    | "onLost"
  > {
  context: Pick<SettlementContext, "ledger" | "notifier" | "clock" | "logger"> & {
    times: Pick<SettlementContext["times"], "settlingMs">;
  };
  network: Pick<SettlementNetwork, "network" | "rpc" | "serveAfter" | "finalAfter">;
}

/** Payments read in one round. */
const maxAtOnce = 500;

/**
 * Blocks that each search repeats. Behind one URL several machines may answer: one returns the
 * head, another returns no logs of the newest blocks yet. Some nodes grant ten blocks a query.
 */
const lateBlocks = 8n;

/** Pause before older logs that all nodes have pruned, or limit, are asked for again. */
const againMs = 60_000;

/**
 * Confirms failed payments that any sender executed, and closes those that no sender can any more.
 * Both go on beside the watch: one page is searched at a time.
 */
export async function watchFailed(watch: FailedWatch, head: bigint): Promise<void> {
  const { context, network, searchedTo, resumeAfter: page } = watch;
  const failed = await findFailed(context.ledger, {
    network: network.network,
    limit: maxAtOnce,
    afterId: watch.resumeAfter,
  });
  if (failed.length === 0 && watch.resumeAfter === "") {
    searchedTo.clear();
    watch.searchAgainAt.clear();
    watch.failedAt = undefined;
    return;
  }
  const isNews = failed.some(({ payment }) => !searchedTo.has(payment.id));
  // It may have failed before, and have been queued while that was searched.
  const isAgain = failed.length > 0 && watch.failedAt === undefined;
  if (isNews || isAgain) watch.failedAt = context.clock.now();
  if (watch.searching !== undefined || watch.stopping.aborted) return;
  watch.resumeAfter = failed.length === maxAtOnce ? (failed.at(-1)?.payment.id ?? "") : "";
  watch.searching = searchPage(watch, { failed, page, head })
    .catch((err: unknown) => {
      if (watch.stopping.aborted) return;
      const fields = { err, network: network.network };
      context.logger.warn(fields, "failed payments could not be searched; retrying");
    })
    .then(() => {
      watch.searching = undefined;
      watch.search = undefined;
    });
}

async function searchPage(
  watch: FailedWatch,
  { failed, page, head }: { failed: readonly OrderedPayment[]; page: string; head: bigint },
): Promise<void> {
  const { searchedTo, searchAgainAt, network } = watch;
  const { clock } = watch.context;
  for (const [id, at] of searchAgainAt) {
    if (at <= clock.now() && searchAgainAt.delete(id) && searchedTo.has(id))
      searchedTo.set(id, -1n);
  }
  const current = { head, keptTo: head };
  watch.search = current;
  // Blocks may leave meanwhile, or be missed: what was final at the head stays searched.
  const isKept = () => current.keptTo >= head - BigInt(network.finalAfter);
  // Between two polls of the chain, the sweeps have nothing new to search.
  const searchable = failed.filter(
    (each) => startOf(watch, each, head) <= head && (searchedTo.get(each.payment.id) ?? -1n) < head,
  );
  const known = watch.found.at(head);
  const found = new Map(
    searchable.flatMap((each) => {
      const execution = known.get(each.payment.id);
      return execution ? [[each, execution] as const] : [];
    }),
  );
  const searched = await search(
    watch,
    searchable.filter((each) => !found.has(each)),
    head,
  );
  for (const [each, execution] of searched) {
    found.set(each, execution);
    if (execution.outcome !== "unknown") known.set(each.payment.id, execution);
  }
  const { unsettled, spent } = await recordExecutions(watch, found, head);
  for (const each of searchable) {
    const { id } = each.payment;
    const execution = found.get(each);
    const isUnsearched = execution?.outcome === "unknown" && execution.isUnsearched === true;
    if (current.keptTo < 0n || (unsettled.has(each) && !isUnsearched)) continue;
    searchedTo.set(id, current.keptTo);
    // From now on newer blocks alone: ranges that no node returns would be asked for each second.
    if (isUnsearched) searchAgainAt.set(id, clock.now() + againMs);
  }
  if (!isKept()) return;
  const over = await findOver(watch, { failed, found, head });
  if (!isKept()) {
    // The one just read may have left.
    watch.finalBlock = undefined;
    return;
  }
  beginToClose(watch, { ended: [...spent, ...over], page, head });
}

/** Logs that a node has pruned, or limits, hold up no other payment. */
async function search(
  watch: FailedWatch,
  payments: readonly OrderedPayment[],
  head: bigint,
): Promise<ReadonlyMap<OrderedPayment, Execution>> {
  const { context, network } = watch;
  if (payments.length === 0) return new Map();
  const found = await tryToFindExecutions({
    rpc: poolWithSignal(network.rpc, watch.stopping),
    payments,
    fromBlock: (each) => startOf(watch, each, head),
    toBlock: head,
    finalAfter: network.finalAfter,
  });
  if (found !== undefined) return found;
  context.logger.warn(
    { network: network.network, payments: payments.length },
    "the logs of failed payments cannot be read; retrying",
  );
  return new Map(payments.map((each) => [each, { outcome: "unknown" }]));
}

/**
 * Returns the payments to look for again in the same blocks: nothing in them is certain yet. Among
 * them are those that were used for something else, or cancelled, at depth, by one node.
 */
async function recordExecutions(
  { context, network }: FailedWatch,
  found: ReadonlyMap<OrderedPayment, Execution>,
  head: bigint,
): Promise<{ unsettled: Set<OrderedPayment>; spent: OrderedPayment[] }> {
  const { ledger, notifier } = context;
  const confirmed: ConcludedPayment[] = [];
  const spent: OrderedPayment[] = [];
  const unsettled = new Set<OrderedPayment>();
  for (const [each, execution] of found) {
    const { id } = each.payment;
    if (execution.outcome === "executed") {
      const { inclusion } = execution;
      const isDeep = Number(head) - inclusion.blockNumber >= network.serveAfter(each.payment);
      const outcomes = { confirmed: { ids: [id], inclusion } };
      const changed = isDeep ? await recordOutcomes(ledger, [outcomes]) : [];
      confirmed.push(...changed);
      // Not deep enough yet. Or reserved again meanwhile: if it is given up, this looks for it once
      // more.
      if (changed.length === 0) unsettled.add(each);
    } else {
      unsettled.add(each);
      const isFinal =
        execution.outcome === "spent" && execution.blockNumber <= head - BigInt(network.finalAfter);
      if (isFinal) spent.push(each);
    }
  }
  notifier.publish(confirmed);
  return { unsettled, spent };
}

/**
 * Those whose time is over at depth, by one node. One whose logs it does not return is among them:
 * each endpoint is asked.
 */
async function findOver(
  watch: FailedWatch,
  {
    failed,
    found,
    head,
  }: {
    failed: readonly OrderedPayment[];
    found: ReadonlyMap<OrderedPayment, Execution>;
    head: bigint;
  },
): Promise<OrderedPayment[]> {
  const { context, network, searchedTo } = watch;
  const height = head - BigInt(network.finalAfter);
  const final = await readFinalBlock(watch, network.rpc, height);
  if (final === undefined) return [];
  const time = await readBlockTime(context.ledger, final);
  return failed.filter((each) => {
    const { id, validBefore } = each.payment;
    if (validBefore > time) return false;
    return found.get(each)?.outcome === "unknown" || (searchedTo.get(id) ?? -1n) >= height;
  });
}

/** Beside the watch. Each write is guarded by the state before, so one by an older head is safe. */
function beginToClose(
  watch: FailedWatch,
  { ended, page, head }: { ended: readonly OrderedPayment[]; page: string; head: bigint },
): void {
  const { clock, logger, times } = watch.context;
  const { network, nextEndsAt, stopping } = watch;
  const isDue = clock.now() >= (nextEndsAt.get(page) ?? 0);
  if (ended.length === 0 || !isDue || watch.closing !== undefined || stopping.aborted) return;
  watch.closing = closeEnded(watch, ended, head)
    .catch((err: unknown) => {
      if (!stopping.aborted) {
        logger.warn({ err, network: network.network }, "ends could not be found; retrying");
      }
      return false;
    })
    .then((isWhole) => {
      const now = clock.now();
      for (const [each, at] of nextEndsAt) if (at <= now) nextEndsAt.delete(each);
      // An endpoint that is behind, or silent, is no reason to ask the others at each block.
      if (!isWhole) nextEndsAt.set(page, now + times.settlingMs);
      watch.closing = undefined;
    });
}

/**
 * Closes those that are over at each endpoint, and confirms those that one shows as executed.
 *
 * @returns whether all are closed
 */
async function closeEnded(
  watch: FailedWatch,
  ended: readonly OrderedPayment[],
  head: bigint,
): Promise<boolean> {
  const { context, searchedTo } = watch;
  const { found, over } = await findEnds(watch, ended);
  await recordExecutions(watch, found, head);
  const ids = over.map(({ payment }) => payment.id);
  watch.onLost(await closePayments(context.ledger, ids));
  for (const id of ids) searchedTo.delete(id);
  return over.length === ended.length;
}

function startOf({ searchedTo }: FailedWatch, each: OrderedPayment, head: bigint): bigint {
  const first = firstBlockOf(each, head);
  const searched = searchedTo.get(each.payment.id);
  if (searched === undefined) return first;
  const next = searched + 1n - lateBlocks;
  return next > first ? next : first;
}
