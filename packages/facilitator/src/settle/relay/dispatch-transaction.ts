import type { Lease } from "@coinslot/storage";
import { type Broadcast, storeReplacement } from "../../ledger/transactions/store-transaction.ts";
import type { Relayer } from "./relayer-context.ts";
import { SignerError } from "./relayer-signer.ts";
import { newestForm, type TrackedTransaction } from "./relayer-state.ts";
import type { SendError } from "./send-error.ts";
import { sendTransaction } from "./send-transaction.ts";
import { reportSigner } from "./sign-or-rest.ts";
import { signReplacement } from "./sign-replacement.ts";

/** Number of a node's "never" answers after which they are believed. */
const maxRefusals = 3;

/**
 * Sends the newest form of an open transaction, and acts on a node's refusal.
 *
 * @param lease the one under which `transaction` is followed. Under another, the relayer follows
 * another object for it, read from the ledger. This one is left as it is.
 */
export async function dispatchTransaction(
  relayer: Relayer,
  transaction: TrackedTransaction,
  lease: Lease | undefined,
): Promise<void> {
  const { context, network, state, keeper, polling } = relayer;
  const { ledger, clock, faultPoint } = context;
  const { times } = network;
  if (lease === undefined || state.lease !== lease) return;
  // A process that slept since it stored this may have lost its lease to another.
  if (!(await ledger.leases.isHeld(lease))) return keeper.lost(lease);
  if (state.lease !== lease) return;
  const form = newestForm(transaction);
  const isAgain = transaction.sentAt !== undefined;
  transaction.sentAt = clock.now();
  transaction.isTooDear = false;
  transaction.unanswered += 1;
  const result = await sendTransaction({ context, network, broadcast: form, isAgain }).finally(
    () => {
      transaction.unanswered -= 1;
    },
  );
  if (result.outcome !== "refused" || !isUntaken(result.error)) {
    transaction.maybeSent = true;
    transaction.isTooLate = false;
  }
  transaction.isNonceRefused =
    result.outcome === "refused" && result.error === "nonce_too_low" && result.isByAll;
  await faultPoint("broadcast");
  if (result.outcome !== "refused" || state.lease !== lease) return;
  switch (result.error) {
    case "already_known":
    case "busy":
    case "unknown":
      return;
    case "nonce_too_low":
      // By this very transaction, where an earlier broadcast of it waits for its answer.
      if (transaction.unanswered > 0) return polling.trigger();
      // Once: where the number of used nonces lags, polls would follow one another without a pause.
      if (!transaction.maybeSent && !transaction.isTooLate) {
        transaction.isTooLate = true;
        transaction.sentAt = clock.now() - times.resendMs();
      }
      return polling.trigger();
    case "nonce_too_high": {
      for (const other of state.open.values()) {
        if (other.nonce < transaction.nonce) other.sentAt = clock.now() - times.resendMs();
      }
      return;
    }
    case "underpriced":
    case "fee_too_low":
      // The next poll replaces it, once. Where that does not help, it waits like any other.
      // Otherwise a node that finds every price too low would run the fee up.
      if (transaction.broadcasts.length > 1) return;
      transaction.formedAt = Math.min(transaction.formedAt, clock.now() - times.replaceMs());
      transaction.sentAt = clock.now() - times.resendMs();
      return;
    case "insufficient_funds":
      transaction.isTooDear = true;
      transaction.formedAt = clock.now();
      return relayer.onInsufficientFunds();
    case "too_large":
    case "invalid": {
      transaction.refusals += result.error === "too_large" ? maxRefusals : 1;
      if (transaction.refusals < maxRefusals || form.content === "filler") return;
      if (relayer.signer === undefined) return;
      return replaceTransaction(relayer, transaction, { content: "filler", lease });
    }
  }
}

/** True if a node that answers so has not taken the transaction, and never had it. */
function isUntaken(error: SendError): boolean {
  return error === "nonce_too_low" || error === "underpriced" || error === "fee_too_low";
}

/**
 * Sends another form of an open transaction, which pays more or only uses the nonce up. Without the
 * key, it sends the newest form again. `lease` as for `dispatchTransaction`.
 */
export async function replaceTransaction(
  relayer: Relayer,
  transaction: TrackedTransaction,
  { content, lease }: { content: Broadcast["content"]; lease: Lease },
): Promise<void> {
  const { context, network, signer, state, labels, keeper, reconciling } = relayer;
  const { ledger, clock, logger, metrics } = context;
  if (signer === undefined) return dispatchTransaction(relayer, transaction, lease);
  let form: Broadcast | undefined;
  try {
    form = await signReplacement({ network, signer, transaction, content });
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    reportSigner(relayer, error);
    // The form that was sent needs no signature. One that nodes refuse would come back here.
    if (transaction.refusals >= maxRefusals) return;
    return dispatchTransaction(relayer, transaction, lease);
  }
  if (state.lease !== lease) return;
  transaction.formedAt = clock.now();
  if (form === undefined) {
    logger.warn(
      { ...labels, nonce: transaction.nonce },
      "the gas price is above the cap on fees; the transaction waits",
    );
    return dispatchTransaction(relayer, transaction, lease);
  }
  const stored = await storeReplacement(ledger, lease, { id: transaction.id, broadcast: form });
  if (stored === "lease_lost") return keeper.lost(lease);
  if (stored !== "stored") return reconciling.trigger();
  transaction.broadcasts.push({ createdAt: context.now(), ...form });
  metrics.transactions.inc({ network: network.network, event: "replaced" });
  await dispatchTransaction(relayer, transaction, lease);
}
