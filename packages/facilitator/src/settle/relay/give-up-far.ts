import type { Lease } from "@coinslot/storage";
import { findHighestIncluded } from "../../ledger/transactions/find-transactions.ts";
import { loseTransaction } from "../../ledger/transactions/settle-transaction.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";
import { countUsedNonces, maxGap } from "./used-nonces.ts";

/** Further reads that have to agree before transactions are given up. */
const confirmingReads = 4;

/**
 * Gives up transactions whose nonces lie so far above the chain's that their gap is not filled:
 * that would spend gas without end, for nonces that a node has made up. Their payments are queued
 * again, and go with the nonce that the chain waits for.
 *
 * The number is the word of a node, too. So it has to be as low for `loseMs`, in several reads. No
 * transaction of ours may be in a block with a higher nonce. Otherwise this number is the false
 * one: what is open stays executable, and other transactions for its payments would waste gas.
 *
 * @param used the chain's first unused nonce
 * @param lowest of the open transactions
 * @returns `plausible` where the relayer rests until the number has changed
 */
export async function giveUpFar(
  relayer: Relayer,
  { used, lowest, lease }: { used: number; lowest: number; lease: Lease },
): Promise<"plausible" | "contradicted"> {
  const { context, network, labels, state, identity } = relayer;
  const now = context.clock.now();
  const included = await findHighestIncluded(context.ledger, identity);
  const isPlausible = included === undefined || included < used;
  if (!state.isFarLogged) {
    context.logger.error(
      { ...labels, used, lowest, included },
      "the chain's nonces are far below those that were signed: a node is wrong about them, or was",
    );
  }
  state.isFarLogged = true;
  if (!isPlausible) return "contradicted";
  state.farSince ??= now;
  if (now - state.farSince < network.times.loseMs()) return "plausible";
  for (let read = 0; read < confirmingReads; read += 1) {
    const again = await countUsedNonces(relayer, { next: lowest });
    if (lowest - again <= maxGap) return "plausible";
  }
  if (state.lease !== lease) return "plausible";
  const far = [...state.open.values()].filter(({ nonce }) => nonce - used > maxGap);
  for (const transaction of far) {
    await loseOpen(relayer, transaction);
    if (state.lease !== lease) return "plausible";
  }
  context.logger.error(
    { ...labels, used, lowest, transactions: far.length },
    "transactions were given up whose nonces the chain does not come to; their payments are queued again",
  );
  state.farSince = undefined;
  state.nextNonce = undefined;
  relayer.reconciling.trigger();
  return "plausible";
}

/** `open` → `lost`, and its payments back to the queue. */
export async function loseOpen(
  { context, network, state, onRequeued, onCapacity }: Relayer,
  transaction: TrackedTransaction,
): Promise<void> {
  const { ledger, metrics } = context;
  await loseTransaction(ledger, transaction.id);
  state.open.delete(transaction.id);
  metrics.transactions.inc({ network: network.network, event: "lost" });
  onRequeued(transaction.payments.map(({ payment }) => payment.id));
  onCapacity();
}
