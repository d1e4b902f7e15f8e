import { closePayments, type LostPayment } from "../../ledger/maintenance/close-payments.ts";
import type { ConcludedPayment } from "../../ledger/payments/ledger-payment.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment, PendingPayment } from "../../ledger/queries/find-orders.ts";
import { findFailed } from "../../ledger/queries/find-watched.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { readAuthorizationStates } from "../evidence/authorization-states.ts";
import { findExecutions } from "../evidence/find-executions.ts";
import { readFinalBlock } from "./final-block.ts";
import type { WatchContext } from "./watch-context.ts";

/** The part of the watch over blocks that the watch over failed payments needs. */
interface FailedWatch
  extends Pick<
    WatchContext,
    "searchedTo" | "resumeAfter" | "failedAt" | "finalBlock" | "closingLogs"
  > {
  context: Pick<SettlementContext, "ledger" | "notifier" | "clock">;
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
    ({ payment }) => startOf(watch, payment) <= head && (searchedTo.get(payment.id) ?? -1n) < head,
  );
  const lost: LostPayment[] = [];
  if (searchable.length > 0) {
    const found = await findExecutions({
      rpc: network.rpc,
      payments: searchable,
      fromBlock: ({ payment }) => startOf(watch, payment),
      toBlock: head,
      finalAfter: network.finalAfter,
    });
    const { unsettled, lost: spent } = await recordExecutions(watch, found, head);
    lost.push(...spent);
    for (const each of searchable) {
      if (!unsettled.has(each)) searchedTo.set(each.payment.id, head);
    }
  }
  return [...lost, ...(await closeOver(watch, failed, head))];
}

/**
 * Returns the payments to look for again in the same blocks: nothing in them is certain yet. And
 * those that are lost.
 */
async function recordExecutions(
  { context, network }: FailedWatch,
  found: ReadonlyMap<OrderedPayment, Execution>,
  head: bigint,
): Promise<{ unsettled: Set<OrderedPayment>; lost: LostPayment[] }> {
  const { ledger, notifier } = context;
  const confirmed: ConcludedPayment[] = [];
  const usedOtherwise: string[] = [];
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
    } else if (
      execution.outcome === "spent" &&
      execution.blockNumber <= head - BigInt(network.finalAfter)
    ) {
      usedOtherwise.push(id);
    } else {
      unsettled.add(each);
    }
  }
  const lost = await closePayments(ledger, usedOtherwise);
  notifier.publish(confirmed);
  return { unsettled, lost };
}

async function closeOver(
  watch: FailedWatch,
  failed: readonly OrderedPayment[],
  head: bigint,
): Promise<LostPayment[]> {
  const { context, network, searchedTo } = watch;
  const height = head - BigInt(network.finalAfter);
  const final = await readFinalBlock(watch, network.rpc, height);
  if (final === undefined) return [];
  const time = await readBlockTime(context.ledger, final);
  const over = failed.filter(
    ({ payment }) => payment.validBefore <= time && (searchedTo.get(payment.id) ?? -1n) >= height,
  );
  const closed = await withoutLateLogs(watch, over, head);
  const lost = await closePayments(
    context.ledger,
    closed.map(({ payment }) => payment.id),
  );
  // A payment that is left is searched from its beginning once more.
  for (const { payment } of over) searchedTo.delete(payment.id);
  return lost;
}

/**
 * Those that are unused. A used one may have paid in the last block of its time, whose logs are
 * late: one that no log explains is left for a while.
 */
async function withoutLateLogs(
  { network, closingLogs }: FailedWatch,
  over: readonly OrderedPayment[],
  head: bigint,
): Promise<OrderedPayment[]> {
  if (over.length === 0) return [];
  const payments = over.map(({ payment }) => payment);
  const { rpc } = network;
  const states = await readAuthorizationStates({ rpc, payments, blockNumber: head });
  return over.filter(
    ({ payment }, index) => states[index] === false || !closingLogs.mayCome(payment.id),
  );
}

function startOf({ searchedTo }: FailedWatch, payment: PendingPayment): bigint {
  const first = BigInt(payment.unusedAtBlock ?? payment.inclusion?.blockNumber ?? 0) + 1n;
  const searched = searchedTo.get(payment.id);
  if (searched === undefined) return first;
  const next = searched + 1n - lateBlocks;
  return next > first ? next : first;
}
