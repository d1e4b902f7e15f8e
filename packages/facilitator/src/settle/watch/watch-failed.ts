import { closePayments, type LostPayment } from "../../ledger/maintenance/close-payments.ts";
import type { ConcludedPayment } from "../../ledger/payments/ledger-payment.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { findFailed } from "../../ledger/queries/find-watched.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { findExecutions, firstBlockOf } from "../evidence/find-executions.ts";
import { readFinalBlock } from "./final-block.ts";
import { findEnds } from "./find-ends.ts";
import type { WatchContext } from "./watch-context.ts";

/** The part of the watch over blocks that the watch over failed payments needs. */
interface FailedWatch
  extends Pick<
    WatchContext,
    "searchedTo" | "resumeAfter" | "failedAt" | "finalBlock" | "closingLogs" | "nextEndsAt"
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

/**
 * Confirms failed payments that any sender executed, and closes those that no sender can any more.
 *
 * @returns the closed ones that had been final
 */
export async function watchFailed(watch: FailedWatch, head: bigint): Promise<LostPayment[]> {
  const { context, network, searchedTo } = watch;
  const failed = await findFailed(context.ledger, {
    network: network.network,
    limit: maxAtOnce,
    afterId: watch.resumeAfter,
  });
  if (failed.length === 0 && watch.resumeAfter === "") {
    searchedTo.clear();
    watch.failedAt = undefined;
    return [];
  }
  if (failed.some(({ payment }) => !searchedTo.has(payment.id))) {
    watch.failedAt = context.clock.now();
  }
  watch.resumeAfter = failed.length === maxAtOnce ? (failed.at(-1)?.payment.id ?? "") : "";
  // Between two polls of the chain, the sweeps have nothing new to search.
  const searchable = failed.filter(
    (each) => startOf(watch, each, head) <= head && (searchedTo.get(each.payment.id) ?? -1n) < head,
  );
  let spent: OrderedPayment[] = [];
  if (searchable.length > 0) {
    const found = await findExecutions({
      rpc: network.rpc,
      payments: searchable,
      fromBlock: (each) => startOf(watch, each, head),
      toBlock: head,
      finalAfter: network.finalAfter,
    });
    const recorded = await recordExecutions(watch, found, head);
    spent = recorded.spent;
    for (const each of searchable) {
      if (!recorded.unsettled.has(each)) searchedTo.set(each.payment.id, head);
    }
  }
  return closeEnded(watch, [...spent, ...(await findOver(watch, failed, head))], head);
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

/** Those whose time is over at depth, by one node. */
async function findOver(
  watch: FailedWatch,
  failed: readonly OrderedPayment[],
  head: bigint,
): Promise<OrderedPayment[]> {
  const { context, network, searchedTo } = watch;
  const height = head - BigInt(network.finalAfter);
  const final = await readFinalBlock(watch, network.rpc, height);
  if (final === undefined) return [];
  const time = await readBlockTime(context.ledger, final);
  return failed.filter(
    ({ payment }) => payment.validBefore <= time && (searchedTo.get(payment.id) ?? -1n) >= height,
  );
}

/** Closes those that are over at each endpoint, and confirms those that one shows as executed. */
async function closeEnded(
  watch: FailedWatch,
  ended: readonly OrderedPayment[],
  head: bigint,
): Promise<LostPayment[]> {
  const { context, searchedTo } = watch;
  const { ledger, clock, times } = context;
  if (ended.length === 0 || clock.now() < watch.nextEndsAt) return [];
  const { found, over } = await findEnds(watch, ended);
  await recordExecutions(watch, found, head);
  const ids = over.map(({ payment }) => payment.id);
  const lost = await closePayments(ledger, ids);
  for (const id of ids) searchedTo.delete(id);
  // An endpoint that is behind, or silent, is no reason to ask the others at each block.
  if (over.length < ended.length) watch.nextEndsAt = clock.now() + times.settlingMs;
  return lost;
}

function startOf({ searchedTo }: FailedWatch, each: OrderedPayment, head: bigint): bigint {
  const first = firstBlockOf(each, head);
  const searched = searchedTo.get(each.payment.id);
  if (searched === undefined) return first;
  const next = searched + 1n - lateBlocks;
  return next > first ? next : first;
}
