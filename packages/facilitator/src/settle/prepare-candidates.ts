import type { SettleErrorReason } from "@coinslot/protocol";
import type { OrderedPayment } from "../ledger/find-orders.ts";
import type { PaymentOutcomes } from "../ledger/record-outcomes.ts";
import { goesThrough, type Reading } from "../simulation/reading.ts";
import type { Candidate } from "./choose-batch.ts";
import { tryToFindExecutions } from "./find-executions.ts";
import { gasOfCall } from "./gas.ts";
import type { ReadingCache } from "./reading-cache.ts";
import type { SettlementNetwork } from "./settlement-context.ts";
import { signedTransferOf } from "./signed-transfer.ts";

/** What is known of a queued payment without asking: enough to see whether a batch is full. */
export function guessCandidate(
  { payment, order }: OrderedPayment,
  readings: ReadingCache,
): Candidate {
  const facts = readings.recall(payment.authorization);
  // Only these two are taken over: what comes may be an earlier guess, made before it was tried.
  return {
    payment,
    order,
    payerHasCode: facts?.payerHasCode ?? payment.isAlone,
    gas: gasOfCall(facts?.gasUsed),
  };
}

/**
 * Tries queued payments once more, each by itself, unless that was done a moment ago, so that what
 * has been poisoned meanwhile costs no gas and no neighbour.
 *
 * @returns those that go through, the outcomes of those that never will, and those of which the chain
 * has to be asked again: they are used, and it does not tell now whether they were paid by that, or they
 * were paid in a block that is not deep enough yet.
 */
export async function prepareCandidates(options: {
  network: SettlementNetwork;
  readings: ReadingCache;
  queue: readonly OrderedPayment[];
}): Promise<{
  candidates: Candidate[];
  outcomes: PaymentOutcomes[];
  unexplained: OrderedPayment[];
}> {
  const { network, readings, queue } = options;
  // One whose transaction came to nothing may be what spoilt it, however lately it was tried.
  const stale = queue.filter(
    ({ payment }) => payment.carried > 0 || !readings.isFresh(payment.authorization),
  );
  const tried = await network.simulator.simulateAll(stale.map(signedTransferOf));
  const refused = new Map<OrderedPayment, Reading>();
  for (const [index, reading] of tried.entries()) {
    const queued = stale[index];
    if (queued === undefined) continue;
    if (goesThrough(reading))
      readings.remember(queued.payment.authorization, { gasUsed: undefined, ...reading });
    else refused.set(queued, reading);
  }
  const candidates = queue
    .filter((queued) => !refused.has(queued))
    .map((queued) => guessCandidate(queued, readings));
  return { candidates, ...(await explainRefusals(network, refused)) };
}

/** A used authorization may have been used for what it says, by somebody else: then it has paid. */
async function explainRefusals(
  { rpc, serveAfter }: SettlementNetwork,
  refused: ReadonlyMap<OrderedPayment, Reading>,
): Promise<{ outcomes: PaymentOutcomes[]; unexplained: OrderedPayment[] }> {
  const outcomes: PaymentOutcomes[] = [];
  const unexplained: OrderedPayment[] = [];
  for (const [queued, reading] of refused) {
    const { id, fingerprint, unusedAtBlock } = queued.payment;
    const queuedUnder = [fingerprint];
    if (reading.isUsed && unusedAtBlock !== undefined) {
      const found = await tryToFindExecutions({
        rpc,
        payments: [queued],
        fromBlock: BigInt(unusedAtBlock) + 1n,
        toBlock: reading.blockNumber,
      });
      const execution = found?.get(queued);
      if (found === undefined || execution?.outcome === "unknown") {
        unexplained.push(queued);
        continue;
      }
      if (execution?.outcome === "executed") {
        const { inclusion } = execution;
        const depth = Number(reading.blockNumber) - inclusion.blockNumber;
        if (depth < serveAfter(queued.payment)) unexplained.push(queued);
        else outcomes.push({ confirmed: { ids: [id], inclusion }, queuedUnder });
        continue;
      }
    }
    outcomes.push({ failed: [{ ids: [id], reason: reasonFor(queued, reading) }], queuedUnder });
  }
  return { outcomes, unexplained };
}

function reasonFor({ payment }: OrderedPayment, reading: Reading): SettleErrorReason {
  if (reading.isUsed) return "invalid_exact_evm_nonce_already_used";
  if (reading.balance < payment.value) return "invalid_exact_evm_insufficient_balance";
  if (payment.validBefore <= reading.blockTimestamp) {
    return "invalid_exact_evm_payload_authorization_valid_before";
  }
  return "invalid_exact_evm_transaction_simulation_failed";
}
