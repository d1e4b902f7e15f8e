import { findRefusal } from "../../ledger/payments/admit-code.ts";
import { type PaymentOutcomes, recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { Lane } from "../../ledger/queries/find-queued.ts";
import { schemeOf } from "../../schemes/registry.ts";
import { claimOf } from "../claim-of.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { maxAttempts } from "../evidence/resolve-transaction.ts";
import type { Fees } from "../relay/fee-quote.ts";
import { isReady, type Relayer } from "../relay/relayer-context.ts";
import type { RelayerFunds } from "../relay/relayer-funds.ts";
import { countAlone, countInFlight, flightOf, hasShared } from "../relay/relayer-state.ts";
import { type BatchLimits, chooseBatch } from "./choose-batch.ts";
import { fitBalance } from "./fit-balance.ts";
import { followUpAt } from "./follow-up.ts";
import type { KnownQueue } from "./known-queue.ts";
import { failedOutcome, type PreparedCandidate, prepareCandidates } from "./prepare-candidates.ts";
import { readDeadline } from "./read-deadline.ts";
import { storeBatch } from "./store-batch.ts";
import { tryAsSent } from "./try-as-sent.ts";

/** Consecutive lost races, or stale views of the queue, after which a plan ends. */
const maxCollisions = 10;
/** Share of a relayer's transactions in flight that payments which go alone may take. */
const aloneShare = 4;

export interface PlanOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  queues: Readonly<Record<Lane, KnownQueue>>;
  relayers: readonly Relayer[];
  funds: RelayerFunds;
  /** True to read the queue even where gathering is likely better: payments may become urgent. */
  isSweep: boolean;
}

interface Plan extends PlanOptions {
  /** Now is the time for a transaction that is not full to follow those in flight. */
  isFollowUp: boolean;
  /** Payments that wait for the next plan. */
  passedOver: Set<string>;
  /** Payments whose transaction was refused once, when it was tried as it would be sent. */
  doubted: Set<string>;
  /** Relayers that cannot pay for a single payment of a lane. */
  poor: Readonly<Record<Lane, Set<Relayer>>>;
}

/**
 * `stored`: a transaction is on its way. `again`: the queue has changed, or a payment was passed
 * over. `collided`: the view of the queue or the relayer was stale. `idle`: this lane has to wait.
 */
type Step = "stored" | "again" | "collided" | "idle";

/**
 * Turns the queue of a network into transactions of the relayers whose lease this process holds.
 * Ends when the queue is empty, every relayer has enough in flight, or gathering is better. While a
 * transaction is not yet included, only two kinds follow it: a full one, and one that makes the
 * next block at the last moment (`follow-up.ts`). Must not run concurrently with itself.
 *
 * The lanes take turns, and payments that go alone have few of the places in flight. However many
 * of them wait, they delay the next batch by one transaction. A fault of one payment ends or delays
 * that payment. An exception is a fault of a node, of the ledger, or of ours.
 *
 * @returns the time by the clock at which to plan again for payments that gather, where there is
 * one.
 */
export async function planTransactions(options: PlanOptions): Promise<number | undefined> {
  const poor = { shared: new Set<Relayer>(), alone: new Set<Relayer>() };
  const isFollowUp = nextFollowUp(options) <= options.context.clock.now();
  const plan: Plan = { ...options, isFollowUp, passedOver: new Set(), doubted: new Set(), poor };
  let turn: readonly Lane[] = ["shared", "alone"];
  for (let collisions = 0; collisions < maxCollisions; ) {
    const step = await planTurn(plan, turn);
    if (step === "idle") break;
    collisions = step === "collided" ? collisions + 1 : 0;
    turn = turn.toReversed();
  }
  return isFollowUp ? undefined : gatherUntil(plan);
}

/** Time for the payments that gather. After a follow-up, the next payment or event plans again. */
function gatherUntil(plan: Plan): number | undefined {
  const at = nextFollowUp(plan);
  return Number.isFinite(at) && plan.queues.shared.count(1) > 0 ? at : undefined;
}

/** Infinite where nothing is in flight that could be followed. */
function nextFollowUp({ context, network, relayers }: PlanOptions): number {
  const flight = flightOf(relayers.map(({ state }) => state));
  if (flight === undefined) return Number.POSITIVE_INFINITY;
  const dispatchMs = Math.max(...relayers.map((relayer) => relayer.dispatchMs));
  return followUpAt({ pace: network.pace, flight, dispatchMs, now: context.clock.now() });
}

async function planTurn(plan: Plan, turn: readonly Lane[]): Promise<Step> {
  for (const lane of turn) {
    const step = await planNext(plan, lane);
    if (step !== "idle") return step;
  }
  return "idle";
}

async function planNext(plan: Plan, lane: Lane): Promise<Step> {
  const { context, network, queues, isSweep } = plan;
  const queue = queues[lane];
  const relayer = chooseRelayer(plan, lane);
  if (relayer === undefined) return "idle";
  const limits = limitsOf(network);
  const isIdle = lane === "alone" || !plan.relayers.some(({ state }) => hasShared(state));
  const maySendPart = isIdle || plan.isFollowUp;
  const isWorthSending = maySendPart || isLikelyFull(plan, limits);
  if (!isWorthSending && !isSweep) return "idle";
  const plannedAt = context.clock.now();
  const ready = await readLane(plan, lane);
  if (ready.length === 0) return "idle";

  const deadline = await readDeadline(context, ready);
  const overdue = ready.filter(({ payment }) => payment.validBefore <= deadline);
  if (overdue.length > 0) {
    // The watch over the chain ends them, once a block says that none can execute them.
    queue.remove(overdue.map(({ payment }) => payment.id));
    return "again";
  }
  const isUrgent = ({ payment }: OrderedPayment) => payment.validBefore <= deadline + 2n;
  // A sweep tries nothing that is then left in the queue.
  if (!isWorthSending && !ready.some(isUrgent)) return "idle";
  // One that goes alone is tried when its turn comes.
  const due = lane === "alone" ? ready.slice(0, 1) : ready;
  const prepared = await prepareCandidates({ network, cache: context.simulationCache, queue: due });
  for (const { queued, why } of prepared.waiting) passOver(plan, queued, why);
  // Reorganisations and used nonces queue payments again. One that was executed fails its trial.
  // The watch over the chain looks on for the others.
  const isTooOften = ({ payment }: PreparedCandidate) => payment.attempts >= maxAttempts;
  const tooOften = prepared.candidates
    .filter(isTooOften)
    .map((each) => failedOutcome(each, schemeOf(each.payment).reasons.executionFailed));
  const outcomes = [...prepared.outcomes, ...tooOften];
  await endWithout(plan, queue, outcomes);
  const candidates = prepared.candidates.filter((each) => !isTooOften(each));
  const { chosen, isFull } = chooseBatch(candidates, limits);
  if (chosen.length === 0) return "again";
  if (!maySendPart && !isFull && !chosen.some(isUrgent)) {
    // Places of refused and waiting payments are filled from behind them: else one of each plan
    // would leave a single transaction in flight.
    const hasPassedOver = prepared.waiting.length + outcomes.length > 0;
    return hasPassedOver ? "again" : "idle";
  }
  return send(plan, { lane, relayer, chosen, plannedAt });
}

/** Turns payments that were tried into a transaction that is on its way. */
async function send(
  plan: Plan,
  options: {
    lane: Lane;
    relayer: Relayer;
    chosen: readonly PreparedCandidate[];
    plannedAt: number;
  },
): Promise<Step> {
  const { context, network, funds } = plan;
  const { lane, relayer, plannedAt } = options;
  const queue = plan.queues[lane];
  const fees = await network.fees.quote();
  if (fees === undefined) {
    context.logger.warn(
      { network: network.network },
      "gas costs more than the cap on fees; payments wait",
    );
    return "idle";
  }
  const fitting = await fitBalance({ network, relayer, funds, chosen: options.chosen, fees });
  if (fitting === undefined) {
    plan.poor[lane].add(relayer);
    // Transactions in flight give back the gas money that they do not use.
    if (countInFlight(relayer.state) === 0) {
      context.logger.warn(
        { network: network.network, relayer: relayer.address },
        "the relayer cannot afford a single payment; payments wait: send it gas money",
      );
    }
    return "again";
  }
  const [first] = fitting.chosen;
  if (first?.payerHasCode && !(await maySend(plan, { queue, relayer, fees, first, ...fitting }))) {
    return "again";
  }
  if (await storeBatch({ context, network, relayer, fees, plannedAt, ...fitting })) {
    queue.remove(fitting.chosen.map(({ payment }) => payment.id));
    return "stored";
  }
  queue.doubt(fitting.chosen);
  return "collided";
}

/**
 * Last check of a payer with code: whether it is still admitted, and its transaction as it would be
 * sent.
 */
async function maySend(
  plan: Plan,
  options: {
    queue: KnownQueue;
    relayer: Relayer;
    first: PreparedCandidate;
    call: Parameters<typeof tryAsSent>[0]["call"];
    fees: Fees;
  },
): Promise<boolean> {
  const { context, network, doubted } = plan;
  const { queue, relayer, first, call, fees } = options;
  const { payer } = first.payment.authorization;
  const failed = failedOutcome(first, schemeOf(first.payment).reasons.trialFailed);
  if ((await findRefusal(context.ledger, payer)) !== undefined) {
    await endWithout(plan, queue, [failed]);
    return false;
  }
  const from = relayer.address;
  const trial = await tryAsSent({ network, from, call, fees });
  if (trial === "passes") return true;
  context.simulationCache.forget(claimOf(first));
  if (trial === "unknown") {
    passOver(plan, first, "no node returns the result of its transaction's simulation");
  } else if (doubted.has(first.payment.id)) {
    await endWithout(plan, queue, [failed]);
  } else {
    // Another sender may have executed it since its trial, or a node is wrong: it is tried again
    // from the beginning.
    doubted.add(first.payment.id);
  }
  return false;
}

/** The relayer with the least in flight that has room for this lane. */
function chooseRelayer({ relayers, network, poor }: Plan, lane: Lane): Relayer | undefined {
  const { maxInFlight } = network;
  const maxAlone = Math.max(1, Math.floor(maxInFlight / aloneShare));
  return relayers
    .filter(
      (relayer) =>
        !poor[lane].has(relayer) &&
        isReady(relayer) &&
        countInFlight(relayer.state) < maxInFlight &&
        (lane === "shared" || countAlone(relayer.state) < maxAlone),
    )
    .sort((a, b) => countInFlight(a.state) - countInFlight(b.state))[0];
}

function limitsOf({ multicall3, limits, spoilt }: SettlementNetwork): BatchLimits {
  if (!multicall3) return { ...limits, maxPayments: 1 };
  const usualMaxPayments = limits.maxPayments;
  return { ...limits, maxPayments: spoilt.maxPayments(usualMaxPayments), usualMaxPayments };
}

function isLikelyFull({ queues, context }: Plan, { maxPayments, maxGas }: BatchLimits): boolean {
  const count = queues.shared.count(maxPayments);
  return count >= maxPayments || BigInt(count) * context.simulationCache.typicalGas() >= maxGas;
}

/** The first payments of a lane that are not passed over. */
async function readLane(plan: Plan, lane: Lane): Promise<OrderedPayment[]> {
  const { queues, network, context, passedOver } = plan;
  const { maxPayments } = limitsOf(network);
  const waiting = await queues[lane].first(maxPayments + passedOver.size);
  context.metrics.queueDepth.set({ network: network.network, lane }, waiting.length);
  return waiting.filter(({ payment }) => !passedOver.has(payment.id));
}

async function endWithout(
  { context, network }: Plan,
  queue: KnownQueue,
  outcomes: readonly PaymentOutcomes[],
): Promise<void> {
  if (outcomes.length === 0) return;
  const changed = await recordOutcomes(context.ledger, outcomes);
  // Also those that did not change: they are not queued any more, or for something else.
  for (const { confirmed, failed = [] } of outcomes) {
    queue.remove([...(confirmed?.ids ?? []), ...failed.flatMap(({ ids }) => ids)]);
  }
  context.notifier.publish(changed);
  for (const { id, state, reason } of changed) {
    context.logger.info(
      { network: network.network, payment: id, state, reason },
      "a queued payment ended without a transaction of ours",
    );
  }
}

function passOver({ passedOver, context, network }: Plan, queued: OrderedPayment, why: string) {
  const { id } = queued.payment;
  passedOver.add(id);
  context.logger.warn({ network: network.network, payment: id }, `a payment waits: ${why}`);
}
