import { chooseBatch } from "./choose-batch.ts";
import { fitBalance } from "./fit-balance.ts";
import type { KnownQueue } from "./known-queue.ts";
import { guessCandidate, prepareCandidates } from "./prepare-candidates.ts";
import type { Relayer } from "./relayer.ts";
import type { RelayerFunds } from "./relayer-funds.ts";
import { countInFlight } from "./relayer-state.ts";
import type { SettlementContext, SettlementNetwork } from "./settlement-context.ts";
import { storeBatch } from "./store-batch.ts";

/** What is known of the queue may be wrong, or another process takes from it with another relayer: so often in a row. */
const mostCollisions = 10;

/**
 * Turns the queue of a network into transactions of the relayers whose lease this process holds,
 * until the queue is empty, every relayer has enough in flight, or it is better to gather: while a
 * transaction is not yet included, only a full one follows it. Must not run beside itself.
 */
export async function planTransactions(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  queue: KnownQueue;
  relayers: readonly Relayer[];
  funds: RelayerFunds;
  /** Whether to look at the queue even if it is likely better to gather: for what becomes urgent. */
  isSweep: boolean;
}): Promise<void> {
  const { context, network, queue, relayers, funds, isSweep } = options;
  const { ledger, board, readings, metrics, times, now, logger } = context;
  /** Payments that are passed over this time. */
  const unexplained = new Set<string>();
  const poor = new Set<Relayer>();
  for (let collisions = 0; collisions < mostCollisions; ) {
    const solvent = relayers.filter((each) => !poor.has(each));
    const relayer = leastBusy(solvent, network.mostInFlight);
    if (relayer === undefined) return;
    const { multicall3 } = network;
    const limits = multicall3 ? network.limits : { ...network.limits, mostPayments: 1 };
    const isIdle = relayers.every(({ state }) => countInFlight(state) === 0);
    if (!isIdle && !isSweep) {
      const most = limits.mostPayments;
      const count = await queue.count(most);
      const isLikelyFull = count >= most || BigInt(count) * readings.typicalGas() >= limits.mostGas;
      if (!isLikelyFull) return;
    }
    const waiting = await queue.first(limits.mostPayments + unexplained.size);
    metrics.queueDepth.set({ network: network.network }, waiting.length);
    const ready = waiting.filter(({ payment }) => !unexplained.has(payment.id));
    if (ready.length === 0) return;

    const deadline = BigInt(Math.ceil((now() + times.leadMs) / 1000));
    if (ready.some(({ payment }) => payment.validBefore <= deadline)) {
      queue.doubt();
      board.publish(await ledger.expire({ network: network.network, before: deadline }));
      continue;
    }
    const guess = chooseBatch(
      ready.map((queued) => guessCandidate(queued, readings)),
      limits,
    );
    const isUrgent = guess.chosen.some(({ payment }) => payment.validBefore <= deadline + 2n);
    if (!isIdle && !guess.isFull && !isUrgent) return;

    const { candidates, outcomes, ...left } = await prepareCandidates({
      network,
      readings,
      queue: guess.chosen,
    });
    for (const { payment } of left.unexplained) {
      unexplained.add(payment.id);
      logger.warn(
        { network: network.network, payment: payment.id },
        "a payment was used by somebody else, and whether that paid it is not known, or not certain, yet; it waits",
      );
    }
    if (outcomes.length > 0) {
      queue.doubt();
      board.publish(await ledger.recordOutcomes(outcomes));
    }
    const { chosen } = chooseBatch(candidates, limits);
    if (chosen.length === 0) continue;
    const fees = await network.fees.quote();
    if (fees === undefined) {
      logger.warn(
        { network: network.network },
        "gas costs more than the cap on fees; payments wait",
      );
      return;
    }
    const fitting = await fitBalance({ network, relayer, funds, chosen, fees });
    if (fitting === undefined) {
      poor.add(relayer);
      // What is in flight gives back what it does not use.
      if (countInFlight(relayer.state) === 0) {
        logger.warn(
          { network: network.network, relayer: relayer.signer.address },
          "the relayer cannot pay for a single payment: send it some gas money; payments wait",
        );
      }
      continue;
    }
    const stored = await storeBatch({ context, network, relayer, fees, ...fitting });
    if (stored) {
      queue.remove(fitting.chosen);
      collisions = 0;
    } else {
      queue.doubt();
      collisions += 1;
    }
  }
}

function leastBusy(relayers: readonly Relayer[], mostInFlight: number): Relayer | undefined {
  return relayers
    .filter((relayer) => relayer.isReady() && countInFlight(relayer.state) < mostInFlight)
    .sort((a, b) => countInFlight(a.state) - countInFlight(b.state))[0];
}
