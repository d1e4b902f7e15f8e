import { createSortableId } from "../../ledger/sortable-id.ts";
import {
  type NewTransaction,
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
 * refusal ends the lease that was written with, and no other. A relayer that is to be given back
 * waits for this: its next holder would send the transaction only once it has reconciled.
 *
 * @returns whether it was stored. If not, the queue or the relayer has changed, or its signer
 * rests.
 */
export async function storeBatch(options: StoreBatchOptions): Promise<boolean> {
  const { relayer } = options;
  relayer.isStoring = true;
  try {
    return await signAndStore(options);
  } finally {
    relayer.isStoring = false;
    // Its end may wait for this.
    if (relayer.leaving) relayer.polling.trigger();
  }
}

interface StoreBatchOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  relayer: Relayer;
  /** Empty in a transaction that makes calls of ours. */
  chosen: readonly Candidate[];
  /** Writes the rows of calls of ours in the same database transaction. */
  alongside?: NewTransaction["alongside"];
  call: ComposedCall;
  fees: Fees;
  /** Time by the clock at which its plan began. */
  plannedAt: number;
}

async function signAndStore(options: StoreBatchOptions): Promise<boolean> {
  const { context, network, relayer, chosen, alongside, call, fees, plannedAt } = options;
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
    content: chosen.length === 0 ? "calls" : "payments",
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
      alongside,
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
  if (chosen.length > 0) metrics.batchSize.observe({ network: network.network }, chosen.length);
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
