import { RpcResponseError } from "@coinslot/chain";
import {
  type Address,
  FacilitatorError,
  type Hex,
  type SettleErrorReason,
} from "@coinslot/protocol";
import type { PaymentOutcomes } from "../../ledger/payments/record-outcomes.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Execution } from "../../schemes/scheme.ts";
import { goesThrough, type SimulationResult } from "../../schemes/simulation-result.ts";
import type { CallFacts, SimulationCache } from "../../simulation/simulation-cache.ts";
import { claimOf } from "../claim-of.ts";
import type { SettlementNetwork } from "../context.ts";
import { tryToFindExecutions } from "../evidence/find-executions.ts";
import { isYoung, outcomeOf } from "../evidence/outcome-of.ts";
import { gasOfCall } from "../relay/gas.ts";
import type { Candidate } from "./choose-batch.ts";

/** A payment that was tried, with the call that executes it. */
export interface PreparedCandidate extends Candidate {
  /** Contracts have code, and accounts that delegate to one (EIP-7702). */
  payerHasCode: boolean;
  target: Address;
  callData: Hex;
}

/**
 * Queued payments after their trial: each is in one of the three lists, or waits for another trial.
 */
export interface Prepared {
  candidates: PreparedCandidate[];
  outcomes: PaymentOutcomes[];
  /** Payments that wait for a result, and the reason. */
  waiting: { queued: OrderedPayment; why: string }[];
}

/**
 * Tries queued payments once more, each by itself, unless that was done a moment ago. A payment
 * that was poisoned meanwhile then costs no gas and no neighbour. A fault of one payment leaves the
 * others their results.
 *
 * @throws FacilitatorError when there is no node to ask.
 */
export async function prepareCandidates(options: {
  network: SettlementNetwork;
  cache: SimulationCache;
  queue: readonly OrderedPayment[];
}): Promise<Prepared> {
  const { network, cache, queue } = options;
  const prepared: Prepared = { candidates: [], outcomes: [], waiting: [] };
  const facts = new Map<OrderedPayment, CallFacts>();
  const stale: OrderedPayment[] = [];
  for (const queued of queue) {
    // A payment whose transaction moved nothing may have spoilt it, however lately it was tried.
    const known = queued.payment.attempts === 0 ? cache.recall(claimOf(queued)) : undefined;
    if (known) facts.set(queued, known);
    else stale.push(queued);
  }
  const refused = await tryAll(stale);
  // The chain's state does not explain some refusals: a node may be wrong once.
  const unexplained = [...refused].filter(([queued, result]) => isUnexplained(queued, result));
  const still = await tryAll(unexplained.map(([queued]) => queued));
  for (const [queued] of unexplained) {
    const result = still.get(queued);
    if (result === undefined) refused.delete(queued);
    else refused.set(queued, result);
  }
  for (const queued of queue) {
    const known = facts.get(queued);
    if (known) prepare(queued, known, prepared);
  }
  await explainRefusals({ network, refused, prepared });
  return prepared;

  /** Tries payments, caches the facts about those that pass, and returns those that are refused. */
  async function tryAll(
    payments: readonly OrderedPayment[],
  ): Promise<Map<OrderedPayment, SimulationResult>> {
    const refusals = new Map<OrderedPayment, SimulationResult>();
    const claims = payments.map(claimOf);
    const trials = await Promise.allSettled(claims.map(network.simulator.simulatePlanned));
    for (const [index, queued] of payments.entries()) {
      const trial = trials[index];
      if (trial?.status === "fulfilled" && goesThrough(trial.value)) {
        const { payerHasCode, gasUsed } = trial.value;
        facts.set(queued, { payerHasCode, gasUsed });
        cache.remember(claimOf(queued), { payerHasCode, gasUsed });
      } else if (trial?.status === "fulfilled") {
        refusals.set(queued, trial.value);
      } else if (isAboutOne(trial?.reason)) {
        prepared.waiting.push({ queued, why: "no node returns the result of its trial" });
      } else throw trial?.reason;
    }
    return refusals;
  }
}

/**
 * A node that was asked about one transfer has returned no result. Other faults concern all of
 * them.
 */
function isAboutOne(reason: unknown): boolean {
  return reason instanceof FacilitatorError && reason.cause instanceof RpcResponseError;
}

function prepare(queued: OrderedPayment, facts: CallFacts, { candidates, outcomes }: Prepared) {
  const { payerHasCode, gasUsed } = facts;
  const call = schemeOf(queued.payment).compose(claimOf(queued), { payerHasCode });
  // Its payer got code after the reservation. It has no gas budget to burn, and must spoil no
  // batch.
  const hasChanged = payerHasCode && !queued.payment.settlesAlone;
  if (call === undefined || hasChanged) {
    outcomes.push(failedOutcome(queued, schemeOf(queued.payment).reasons.trialFailed));
    return;
  }
  const { payment, order } = queued;
  candidates.push({ payment, order, payerHasCode, ...call, gas: gasOfCall(gasUsed) });
}

/** The end of a queued payment that no transaction will carry. */
export function failedOutcome(
  { payment }: OrderedPayment,
  reason: SettleErrorReason,
): PaymentOutcomes {
  return { failed: [{ ids: [payment.id], reason }], queuedUnder: [payment.fingerprint] };
}

/**
 * A used authorization may have been executed exactly as signed, by another sender. Then it has
 * paid. One search serves all of them: however many payers cancel what they have queued, the plan
 * waits for it once.
 */
async function explainRefusals(options: {
  network: SettlementNetwork;
  refused: ReadonlyMap<OrderedPayment, SimulationResult>;
  prepared: Prepared;
}): Promise<void> {
  const { network, refused, prepared } = options;
  const { serveAfter } = network;
  const { outcomes, waiting } = prepared;
  const why = "another sender has used it, and the outcome is not certain yet";
  const executions = await searchUsed(network, refused);
  for (const [queued, result] of refused) {
    const { id, fingerprint } = queued.payment;
    const outcome = outcomeOf(id, executions.get(queued), { reason: reasonFor(queued, result) });
    const mustWait =
      outcome === undefined || isYoung(outcome, result.blockNumber, serveAfter(queued.payment));
    if (mustWait) waiting.push({ queued, why });
    else outcomes.push({ ...outcome, queuedUnder: [fingerprint] });
  }
}

/** Executions of those that were used, up to the newest block at which they were read. */
async function searchUsed(
  { rpc, finalAfter, lateLogs }: SettlementNetwork,
  refused: ReadonlyMap<OrderedPayment, SimulationResult>,
): Promise<ReadonlyMap<OrderedPayment, Execution>> {
  const used: OrderedPayment[] = [];
  let toBlock = 0n;
  for (const [queued, { isUsed, blockNumber }] of refused) {
    const { unusedAtBlock } = queued.payment;
    if (!isUsed || unusedAtBlock === undefined) continue;
    used.push(queued);
    if (blockNumber > toBlock) toBlock = blockNumber;
  }
  if (used.length === 0) return new Map();
  const search = { rpc, payments: used, toBlock, finalAfter, lateLogs };
  const found = await tryToFindExecutions(search);
  return found ?? new Map(used.map((queued) => [queued, { outcome: "unknown" }]));
}

function isUnexplained(queued: OrderedPayment, result: SimulationResult): boolean {
  return reasonFor(queued, result) === schemeOf(queued.payment).reasons.trialFailed;
}

function reasonFor({ payment }: OrderedPayment, result: SimulationResult): SettleErrorReason {
  const { reasons } = schemeOf(payment);
  if (result.isUsed) return reasons.alreadyUsed;
  if (result.balance < payment.value) return reasons.insufficientBalance;
  if (payment.validBefore <= result.blockTimestamp) return reasons.expired;
  return reasons.trialFailed;
}
