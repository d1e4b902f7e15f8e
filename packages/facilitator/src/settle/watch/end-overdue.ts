import type { BlockHeader } from "@coinslot/chain";
import type { SettleErrorReason } from "@coinslot/protocol";
import { type PaymentOutcomes, recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { findOverdue } from "../../ledger/queries/find-watched.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Execution } from "../../schemes/scheme.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { readAuthorizationStates } from "../evidence/authorization-states.ts";
import { tryToFindExecutions } from "../evidence/find-executions.ts";
import type { FoundExecutions } from "../evidence/found-executions.ts";
import { isYoung, outcomeOf } from "../evidence/outcome-of.ts";
import { poolWithSignal } from "../evidence/with-signal.ts";
import { type FinalBlockReader, readFinalBlock } from "./final-block.ts";

type OverdueContext = Pick<SettlementContext, "ledger" | "notifier" | "logger" | "now">;
type OverdueNetwork = Pick<
  SettlementNetwork,
  "network" | "rpc" | "finalAfter" | "serveAfter" | "lateLogs"
>;
type Head = Pick<BlockHeader, "number" | "timestamp">;

/** Whether payments past their time are still to be decided, by their states. */
interface Undecided {
  queued: boolean;
  submitted: boolean;
}

/**
 * The payment of each state after which the next look goes on; "": from the first. Those that wait
 * for a node would hide the later ones.
 */
export type OverdueCursors = Record<keyof Undecided, string>;

/** By state, set while logs explain its used payments: the first endpoint may be slow. */
export type OverdueSearches = Record<keyof Undecided, Promise<void> | undefined>;

interface OverdueWatch extends FinalBlockReader {
  readonly overdueAfter: OverdueCursors;
  readonly explaining: OverdueSearches;
  readonly found: FoundExecutions;
  /** Ends the searches, by its reason. */
  readonly stopping: AbortSignal;
}

/** Payments of a state that are read in one look. */
const maxAtOnce = 500;

/**
 * Ends payments that no transaction of ours will. A block's time does so together with the state of
 * the authorization. Neither a clock of ours alone nor a node's word alone does. The ledger's
 * README has the states ("Past its time").
 *
 * - `queued`: a head whose time is past `validBefore` decides. Buyers wait for it, and a failed
 *   payment is watched until a final block has the last word.
 * - `submitted`: a final block of that kind decides. Without it, a transaction that is never mined
 *   would hold its payers' commitments for ever.
 *
 * The clock says only that there may be such payments, so that the next head is read soon. One look
 * reads the state of all of them in one batch. The logs of those that are used are read beside the
 * watch, and these are undecided meanwhile.
 *
 * The racer is a planner whose clock is behind: it may store a transaction for a queued one
 * meanwhile. The outcome of a queued one therefore holds for `queued` alone.
 *
 * @throws RpcError when the chain is unreachable.
 */
export async function endOverdue(options: {
  context: OverdueContext;
  network: OverdueNetwork;
  watch: OverdueWatch;
  head: Head;
}): Promise<Undecided> {
  const { context, network, watch, head } = options;
  const { db, dialect } = context.ledger;
  const clocks = { db, dialect, now: context.now };
  const clock = BigInt(Math.floor(context.now() / 1000));
  const headTime = await readBlockTime(clocks, head);
  const before = clock > headTime ? clock : headTime;
  const queued = await findNext(options, "queued", before);
  const submitted = await findNext(options, "submitted", before);
  const leftQueued = await endThose({
    ...options,
    state: "queued",
    overdue: queued.page,
    over: headTime,
  });
  const isQueuedLeft = leftQueued || queued.hasMore;
  if (submitted.page.length === 0) return { queued: isQueuedLeft, submitted: submitted.hasMore };
  const final = await readFinalBlock(watch, network.rpc, head.number - BigInt(network.finalAfter));
  const leftSubmitted = await endThose({
    ...options,
    state: "submitted",
    overdue: submitted.page,
    over: final && (await readBlockTime(clocks, final)),
  });
  return { queued: isQueuedLeft, submitted: leftSubmitted || submitted.hasMore };
}

/** The next page of a state. `hasMore`: there may be payments before it, or behind it. */
async function findNext(
  { context, network, watch }: Parameters<typeof endOverdue>[0],
  state: keyof Undecided,
  before: bigint,
): Promise<{ page: OrderedPayment[]; hasMore: boolean }> {
  const afterId = watch.overdueAfter[state];
  const page = await findOverdue(context.ledger, {
    network: network.network,
    state,
    before,
    limit: maxAtOnce,
    afterId,
  });
  watch.overdueAfter[state] = page.length === maxAtOnce ? (page.at(-1)?.payment.id ?? "") : "";
  return { page, hasMore: afterId !== "" || watch.overdueAfter[state] !== "" };
}

/** Ends those that a block is past. Returns whether some are left. */
async function endThose(options: {
  context: OverdueContext;
  network: OverdueNetwork;
  watch: OverdueWatch;
  head: Head;
  state: keyof Undecided;
  overdue: readonly OrderedPayment[];
  /** Time of that block, in Unix seconds. */
  over: bigint | undefined;
}): Promise<boolean> {
  const { network, watch, head, state, overdue, over } = options;
  // Those that were found at this head wait for a newer one.
  const known = watch.found.at(head.number);
  const due = overdue.filter(
    ({ payment }) => over !== undefined && payment.validBefore <= over && !known.has(payment.id),
  );
  if (due.length === 0) return overdue.length > 0;
  const { unused, used, unanswered } = await readStates(network, due, head);
  if (used.length + unanswered.length > 0) beginToExplain({ ...options, used, unanswered, known });
  const ended = unused.length === 0 ? 0 : await end(options, [expiryOf(unused, state)]);
  return ended < overdue.length;
}

/** Records outcomes. Returns the number of payments that they have ended. */
async function end(
  { context, network, state }: Pick<ExplainOptions, "context" | "network" | "state">,
  outcomes: readonly PaymentOutcomes[],
): Promise<number> {
  const ended = await recordOutcomes(context.ledger, outcomes);
  context.notifier.publish(ended);
  if (ended.length > 0) {
    context.logger.warn(
      { network: network.network, payments: ended.length, state },
      "payments that no transaction of ours has executed in time are ended",
    );
  }
  return ended.length;
}

/** One outcome for all payments that expire for the same reason: one statement records it. */
function expiryOf(unused: readonly OrderedPayment[], state: keyof Undecided): PaymentOutcomes {
  const idsByReason = new Map<SettleErrorReason, string[]>();
  for (const { payment } of unused) {
    const reason = schemeOf(payment).reasons.expired;
    const ids = idsByReason.get(reason);
    if (ids) ids.push(payment.id);
    else idsByReason.set(reason, [payment.id]);
  }
  const failed = [...idsByReason].map(([reason, ids]) => ({ ids, reason }));
  return { failed, ...guardOf(unused, state) };
}

/** A decision on the queue does not hold for a transaction, or for what was signed anew. */
function guardOf(
  payments: readonly OrderedPayment[],
  state: keyof Undecided,
): Pick<PaymentOutcomes, "queuedUnder"> {
  if (state === "submitted") return {};
  return { queuedUnder: payments.map(({ payment }) => payment.fingerprint) };
}

interface States {
  unused: OrderedPayment[];
  used: OrderedPayment[];
  /** The token has returned nothing, or malformed data. */
  unanswered: OrderedPayment[];
}

async function readStates(
  { rpc }: OverdueNetwork,
  due: readonly OrderedPayment[],
  head: Head,
): Promise<States> {
  const payments = due.map(({ payment }) => payment);
  const answers = await readAuthorizationStates({ rpc, payments, blockNumber: head.number });
  const states: States = { unused: [], used: [], unanswered: [] };
  for (const [index, payment] of due.entries()) {
    const isUsed = answers[index];
    if (isUsed === undefined) states.unanswered.push(payment);
    else if (isUsed) states.used.push(payment);
    else states.unused.push(payment);
  }
  return states;
}

interface ExplainOptions extends Omit<States, "unused"> {
  context: OverdueContext;
  network: OverdueNetwork;
  watch: OverdueWatch;
  head: Head;
  state: keyof Undecided;
  /** Executions at this head, to which those without enough blocks on top are added. */
  known: Map<string, Execution>;
}

/** One search of a state at a time. Each outcome is guarded by the state before. */
function beginToExplain(options: ExplainOptions): void {
  const { context, network, state } = options;
  const { explaining, stopping } = options.watch;
  if (explaining[state] !== undefined || stopping.aborted) return;
  explaining[state] = explainUsed(options)
    .then(async (outcomes) => {
      if (outcomes.length > 0) await end(options, outcomes);
    })
    .catch((err: unknown) => {
      if (stopping.aborted) return;
      const fields = { err, network: network.network, state };
      context.logger.warn(fields, "payments past their time could not be explained; retrying");
    })
    .then(() => {
      explaining[state] = undefined;
    });
}

/**
 * Outcomes by the logs. A payment whose logs cannot be read, or may be late, waits; so does one in
 * a block that is not deep enough.
 *
 * A submitted one without an answer waits for it, and one whose search has no beginning waits for a
 * receipt. A queued one has no transaction that would end it otherwise. So its token must answer
 * within the time of late logs, and a use without an event fails it.
 */
async function explainUsed(options: ExplainOptions): Promise<PaymentOutcomes[]> {
  const { context, network, watch, head, state, used, unanswered, known } = options;
  const { finalAfter, serveAfter, lateLogs } = network;
  const rpc = poolWithSignal(network.rpc, watch.stopping);
  const isSearchable = ({ payment }: OrderedPayment) => payment.unusedAtBlock !== undefined;
  const unexplained = state === "queued" ? [...used, ...unanswered] : used.filter(isSearchable);
  const search = { rpc, toBlock: head.number, finalAfter, lateLogs };
  const payments = unexplained.filter(isSearchable);
  const executions =
    payments.length === 0
      ? new Map<OrderedPayment, Execution>()
      : await tryToFindExecutions({ ...search, payments });
  if (executions === undefined) {
    context.logger.warn(
      { network: network.network, payments: payments.length },
      "the logs of payments past their time cannot be read; they wait",
    );
    return [];
  }
  const silent = new Set(unanswered);
  const outcomes: PaymentOutcomes[] = [];
  for (const each of unexplained) {
    const { payment } = each;
    const execution = executions.get(each);
    const isUnknown = execution === undefined && silent.has(each);
    if (isUnknown && lateLogs.mayCome(payment.id)) continue;
    const { alreadyUsed, expired } = schemeOf(payment).reasons;
    const outcome = outcomeOf(payment.id, execution, { reason: isUnknown ? expired : alreadyUsed });
    if (outcome === undefined) continue;
    if (isYoung(outcome, head.number, serveAfter(payment))) {
      if (execution) known.set(payment.id, execution);
      continue;
    }
    outcomes.push({ ...outcome, ...guardOf([each], state) });
  }
  return outcomes;
}
