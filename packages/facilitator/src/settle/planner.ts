import type { Address } from "@coinslot/protocol";
import { createSortableId } from "../ledger/ledger.ts";
import type { StoreOutcome } from "../ledger/store-transaction.ts";
import { encodeTransfer } from "../token/encode-transfer.ts";
import { encodeBatch } from "./batch-calldata.ts";
import { type Candidate, chooseBatch } from "./choose-batch.ts";
import type { Fees } from "./fee-quote.ts";
import { calldataGas, gasLimitOf } from "./gas.ts";
import { guessCandidate, prepareCandidates } from "./prepare-candidates.ts";
import type { Relayer } from "./relayer.ts";
import { countInFlight, trackedFrom } from "./relayer-state.ts";
import type { SettlementContext, SettlementNetwork } from "./settlement-context.ts";
import { signBroadcast } from "./sign-broadcast.ts";

/** Another process with another relayer takes from the same queue: so often in a row it may be faster. */
const mostCollisions = 10;

/**
 * Turns the queue of a network into transactions of the relayers whose lease this process holds,
 * until the queue is empty, every relayer has enough in flight, or it is better to gather: while a
 * transaction is not yet included, only a full one follows it. Must not run beside itself.
 */
export async function planTransactions(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  relayers: readonly Relayer[];
  /** Whether to read the queue even if it is likely better to gather: for what becomes urgent. */
  isSweep: boolean;
}): Promise<void> {
  const { context, network, relayers, isSweep } = options;
  const { ledger, board, readings, metrics, times, now, logger } = context;
  for (let collisions = 0; collisions < mostCollisions; ) {
    const relayer = leastBusy(relayers, network.mostInFlight);
    if (relayer === undefined) return;
    const { multicall3 } = network;
    const limits = multicall3 ? network.limits : { ...network.limits, mostPayments: 1 };
    const isIdle = relayers.every(({ state }) => countInFlight(state) === 0);
    if (!isIdle && !isSweep) {
      // Counting costs a hundredth of reading, and this is asked for with every payment.
      const most = limits.mostPayments;
      const count = await ledger.countQueued({ network: network.network, upTo: most });
      const isLikelyFull = count >= most || BigInt(count) * readings.typicalGas() >= limits.mostGas;
      if (!isLikelyFull) return;
    }
    const queue = await ledger.findQueued({
      network: network.network,
      limit: limits.mostPayments,
    });
    metrics.queueDepth.set({ network: network.network }, queue.length);
    if (queue.length === 0) return;

    const deadline = BigInt(Math.ceil((now() + times.leadMs) / 1000));
    if (queue.some(({ payment }) => payment.validBefore <= deadline)) {
      board.publish(await ledger.expire({ network: network.network, before: deadline }));
      continue;
    }
    const guess = chooseBatch(
      queue.map((queued) => guessCandidate(queued, readings)),
      limits,
    );
    const isUrgent = guess.chosen.some(({ payment }) => payment.validBefore <= deadline + 2n);
    if (!isIdle && !guess.isFull && !isUrgent) return;

    const { candidates, outcomes } = await prepareCandidates({
      network,
      readings,
      queue: guess.chosen,
    });
    if (outcomes.length > 0) board.publish(await ledger.recordOutcomes(outcomes));
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
    const stored = await storeBatch({ context, network, relayer, chosen, fees, multicall3 });
    if (stored) collisions = 0;
    else collisions += 1;
  }
}

function leastBusy(relayers: readonly Relayer[], mostInFlight: number): Relayer | undefined {
  return relayers
    .filter((relayer) => relayer.isReady() && countInFlight(relayer.state) < mostInFlight)
    .sort((a, b) => countInFlight(a.state) - countInFlight(b.state))[0];
}

/** Signs a transaction, stores it together with the move of its payments, and only then sends it. */
async function storeBatch(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  relayer: Relayer;
  chosen: readonly Candidate[];
  fees: Fees;
  multicall3: Address | undefined;
}): Promise<boolean> {
  const { context, network, relayer, chosen, fees, multicall3 } = options;
  const { ledger, board, metrics, checkpoint, clock } = context;
  const { signer, state } = relayer;
  const { lease, nextNonce: nonce } = state;
  if (lease === undefined || nonce === undefined) return false;
  const { to, data, gasLimit } = composeCall({
    chosen,
    multicall3,
    callGasCap: network.callGasCap,
  });
  const broadcast = await signBroadcast({
    signer,
    chainId: network.chainId,
    nonce,
    to,
    data,
    gasLimit,
    fees,
    content: "payments",
  });
  await checkpoint("signed");
  const id = createSortableId(context.now());
  const relayerAddress: Address = `0x${signer.address.slice(2).toLowerCase()}`;
  const record = {
    id,
    network: network.network,
    relayer: relayerAddress,
    nonce,
    gasLimit,
    broadcast,
  };
  const paymentIds = chosen.map(({ payment }) => payment.id);
  let outcome: StoreOutcome;
  try {
    outcome = await ledger.storeTransaction(lease, { ...record, paymentIds });
    if (outcome === "stored") await checkpoint("stored");
  } catch (error) {
    // The commit may have happened though nobody heard of it: the ledger is asked what it holds.
    state.nextNonce = undefined;
    relayer.reload();
    throw error;
  }
  switch (outcome) {
    case "stored":
      break;
    case "lease_lost":
      relayer.leaseLost();
      return false;
    case "nonce_taken":
      state.nextNonce = undefined;
      relayer.reload();
      return false;
    case "payments_changed":
      return false;
  }
  state.nextNonce = nonce + 1;
  metrics.batchSize.observe({ network: network.network }, chosen.length);
  metrics.transactions.inc({ network: network.network, event: "stored" });
  const createdAt = context.now();
  const payments = chosen.map(({ payment, order }) => ({
    order,
    payment: {
      ...payment,
      state: "submitted" as const,
      transactionId: id,
      carried: payment.carried + 1,
      submittedAt: createdAt,
    },
  }));
  const broadcasts = [{ ...broadcast, createdAt }];
  const transaction = { ...record, createdAt, broadcasts, payments };
  relayer.launch(trackedFrom(transaction, clock.now()));
  board.started(
    payments.map(({ payment }) => payment),
    broadcast.hash,
  );
  return true;
}

/** One payment goes to its token directly, several go through Multicall3. */
function composeCall(options: {
  chosen: readonly Candidate[];
  multicall3: Address | undefined;
  callGasCap: bigint;
}): { to: Address; data: `0x${string}`; gasLimit: bigint } {
  const { chosen, multicall3, callGasCap } = options;
  const calls = chosen.map(({ payment, order, payerHasCode }) => ({
    target: payment.authorization.asset,
    callData: encodeTransfer({
      authorization: {
        from: payment.authorization.payer,
        to: order.payTo,
        value: payment.value,
        validAfter: order.validAfter,
        validBefore: payment.validBefore,
        nonce: payment.authorization.nonce,
      },
      signature: order.signature,
      payerHasCode,
    }),
  }));
  const [first] = calls;
  const [only] = chosen;
  if (first === undefined || only === undefined) throw new TypeError("A batch without payments");
  if (chosen.length === 1 || multicall3 === undefined) {
    const { target: to, callData: data } = first;
    // Somebody else's code runs here: it gets what its simulation was granted, and no more.
    const gasLimit = only.payerHasCode
      ? 21_000n + calldataGas(data) + callGasCap
      : gasLimitOf(data, only.gas);
    return { to, data, gasLimit };
  }
  const data = encodeBatch(calls);
  const gas = chosen.reduce((total, candidate) => total + candidate.gas, 0n);
  return { to: multicall3, data, gasLimit: gasLimitOf(data, gas) };
}
