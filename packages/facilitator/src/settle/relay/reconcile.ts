import {
  findHighestNonce,
  findOpenIds,
  findOpenTransactions,
} from "../../ledger/transactions/find-transactions.ts";
import { reopenTransaction } from "../../ledger/transactions/settle-transaction.ts";
import { msToBlockPoll } from "../pace/ms-to-block-poll.ts";
import { dispatchTransaction, replaceTransaction } from "./dispatch-transaction.ts";
import { followTransactions } from "./follow-transactions.ts";
import { followHeads, type Relayer, schedulePoll } from "./relayer-context.ts";
import { countInFlight, learnFromLedger, newestForm, trackedFrom } from "./relayer-state.ts";
import { countUsedNonces, maxGap } from "./used-nonces.ts";

/**
 * Compares ledger and chain: under a new lease, after a block has left, or where the ledger has
 * ended a transaction followed here. A process of an older release gives transactions up as lost,
 * whatever lease holds their relayer.
 */
export async function reconcile(relayer: Relayer): Promise<void> {
  relayer.isStale = true;
  const { context, state, identity, labels } = relayer;
  const { ledger, clock, metrics, logger } = context;
  const { lease } = state;
  if (lease === undefined) return;
  const highest = await findHighestNonce(ledger, identity);
  const known = Math.max(state.nextNonce ?? 0, (highest ?? -1) + 1);
  const used = await countUsedNonces(relayer, { next: known });
  if (highest !== undefined && used - known > maxGap) {
    logger.error(
      { ...labels, used, next: known },
      "the chain's nonces are far ahead of the ledger's: the ledger was restored, another program uses the key, or the node is wrong",
    );
  }
  const next = await reopenFrom(relayer, Math.max(known, used));
  // A transaction is stored before it is followed: the read below has those that are still open.
  const followed = [...state.open.keys()];
  const open = await findOpenTransactions(ledger, identity);
  if (state.lease?.epoch !== lease.epoch) return;
  const openIds = new Set(open.map(({ id }) => id));
  for (const id of followed) if (!openIds.has(id)) state.open.delete(id);
  metrics.inFlight.set(labels, countInFlight(state));
  followHeads(relayer);
  for (const transaction of open) {
    const tracked = state.open.get(transaction.id);
    if (tracked) learnFromLedger(tracked, transaction);
    else state.open.set(transaction.id, trackedFrom(transaction, clock.now()));
  }
  await pollTransactions(relayer);
  for (const transaction of state.open.values()) {
    if (transaction.sentAt !== undefined || transaction.isIncluded) continue;
    // One that was given up lost its payments. Another carries them, or they are over.
    const isEmpty = transaction.payments.length === 0;
    if (isEmpty && newestForm(transaction).content === "payments") {
      await replaceTransaction(relayer, transaction, { content: "filler", lease });
    } else await dispatchTransaction(relayer, transaction, lease);
  }
  if (state.lease?.epoch !== lease.epoch) return;
  // Only now: work that breaks off before this starts again from its beginning.
  relayer.isStale = false;
  state.farSince = undefined;
  state.nextNonce = Math.max(state.nextNonce ?? 0, next);
  relayer.resolveSettled();
  relayer.onReconciled();
}

/**
 * The first nonce from `nonce` on that no transaction has. Transactions that were given up with
 * these nonces are open again: the chain has come to them.
 */
async function reopenFrom({ context, identity }: Relayer, nonce: number): Promise<number> {
  let next = nonce;
  while (await reopenTransaction(context.ledger, { ...identity, nonce: next })) next += 1;
  return next;
}

/** Reconciles if the ledger has open transactions that are not followed here. */
export async function compareLedger({
  context,
  state,
  identity,
  reconciling,
}: Relayer): Promise<void> {
  if (state.lease === undefined) return;
  const ids = await findOpenIds(context.ledger, identity);
  if (ids.some((id) => !state.open.has(id))) reconciling.trigger();
}

/** Polls for the open transactions' outcomes, and schedules the next poll. */
export async function pollTransactions(relayer: Relayer): Promise<void> {
  const { context, network, state, labels, pace } = relayer;
  if (state.lease === undefined || state.open.size === 0) return;
  await followTransactions(relayer);
  context.metrics.inFlight.set(labels, countInFlight(state));
  followHeads(relayer);
  if (state.open.size === 0) return;
  const untilBlockMs = Math.min(pace.next(), msToBlockPoll(network.pace, context.clock.now()));
  // Those in a block wait for others on top of it.
  schedulePoll(relayer, countInFlight(state) === 0 ? network.pollMs : untilBlockMs);
}
