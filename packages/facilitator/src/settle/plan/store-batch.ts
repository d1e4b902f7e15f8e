import { createSortableId } from "../../ledger/sortable-id.ts";
import {
  type StoreOutcome,
  storeTransaction,
} from "../../ledger/transactions/store-transaction.ts";
import { claimOf } from "../claim-of.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { Fees } from "../relay/fee-quote.ts";
import { launchTransaction } from "../relay/relayer.ts";
import type { Relayer } from "../relay/relayer-context.ts";
import { trackedFrom } from "../relay/relayer-state.ts";
import { signOrRest } from "../relay/sign-or-rest.ts";
import type { Candidate } from "./choose-batch.ts";
import type { ComposedCall } from "./compose-call.ts";

/**
 * Signs a transaction, stores it together with the move of its payments, and only then sends it.
 *
 * The racer is the lease keeper: it may lose the lease and take another one at each `await`. So a
 * refusal ends the lease that was written with, and no other.
 *
 * @returns whether it was stored. If not, the queue or the relayer has changed, or its signer rests.
 */
export async function storeBatch(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  relayer: Relayer;
  chosen: readonly Candidate[];
  call: ComposedCall;
  fees: Fees;
  /** Time by the clock at which its plan began. */
  plannedAt: number;
}): Promise<boolean> {
  const { context, network, relayer, chosen, call, fees, plannedAt } = options;
  const { ledger, notifier, simulationCache, metrics, faultPoint, clock } = context;
  const { signer, identity, state } = relayer;
  const { lease, nextNonce: nonce } = state;
  if (lease === undefined || nonce === undefined || signer === undefined) return false;
  const { to, data, gasLimit } = call;
  const broadcast = await signOrRest(relayer, {
    signer,
    chainId: network.chainId,
    nonce,
    to,
    data,
    gasLimit,
    fees,
    content: "payments",
  });
  if (broadcast === undefined) return false;
  await faultPoint("signed");
  const id = createSortableId(context.now());
  const record = {
    id,
    ...identity,
    nonce,
    gasLimit,
    broadcast,
  };
  let outcome: StoreOutcome;
  try {
    outcome = await storeTransaction(ledger, lease, {
      payments: chosen.map(({ payment }) => payment),
      ...record,
    });
    if (outcome === "stored") await faultPoint("stored");
  } catch (error) {
    // The commit may have happened although its confirmation was lost. The ledger's rows decide.
    state.nextNonce = undefined;
    relayer.reconciling.trigger();
    throw error;
  }
  switch (outcome) {
    case "stored":
      break;
    case "lease_lost":
      relayer.keeper.lost(lease);
      return false;
    case "nonce_taken":
      state.nextNonce = undefined;
      relayer.reconciling.trigger();
      return false;
    case "payments_changed":
      return false;
  }
  for (const each of chosen) simulationCache.forget(claimOf(each));
  metrics.batchSize.observe({ network: network.network }, chosen.length);
  metrics.transactions.inc({ network: network.network, event: "stored" });
  const createdAt = context.now();
  const payments = chosen.map(({ payment, order }) => ({
    order,
    payment: {
      ...payment,
      transactionId: id,
      attempts: payment.attempts + 1,
    },
  }));
  const broadcasts = [{ createdAt, ...broadcast }];
  const transaction = { createdAt, broadcasts, payments, ...record };
  // Under a lease taken meanwhile, the reconciliation reads this transaction from the ledger.
  if (state.lease === lease) {
    state.nextNonce = nonce + 1;
    launchTransaction(relayer, trackedFrom(transaction, clock.now()), plannedAt);
  }
  notifier.started(
    payments.map(({ payment }) => payment),
    broadcast.hash,
  );
  return true;
}
