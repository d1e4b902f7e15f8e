import type { Lease } from "@coinslot/storage";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import { dispatchTransaction, replaceTransaction } from "./dispatch-transaction.ts";
import { fillNonces } from "./fill-nonces.ts";
import { giveUpFar, loseOpen } from "./give-up-far.ts";
import { readReceiptsEverywhere } from "./read-receipts.ts";
import { recordReceipt } from "./record-receipt.ts";
import type { Relayer } from "./relayer-context.ts";
import { SignerError } from "./relayer-signer.ts";
import { newestForm, type TrackedTransaction } from "./relayer-state.ts";
import { reportSigner } from "./sign-or-rest.ts";
import {
  type CountWords,
  countRefusedNonces,
  countUsedNonces,
  createCountWords,
  maxGap,
} from "./used-nonces.ts";
import { everywhereMs } from "./within-time.ts";

/** Time of an endpoint for receipts of transactions whose nonces count as unused. */
const unlikelyMs = 2_000;

/**
 * Resends a transaction that no block holds, then replaces it; or finds its nonce used: by itself,
 * as another endpoint has its receipt, or by another sender. Ends where `lease` is over: under a
 * new one, the relayer follows other objects.
 */
export async function resendStuck(
  relayer: Relayer,
  missing: readonly TrackedTransaction[],
  { lease, head }: { lease: Lease; head: bigint },
): Promise<void> {
  const { state } = relayer;
  const { times } = relayer.network;
  const now = relayer.context.clock.now();
  const late = missing.filter(
    ({ sentAt, formedAt }) => now - (sentAt ?? formedAt) >= times.resendMs(),
  );
  if (late.length === 0) return;
  // While nothing else needs it, the head may be old: it decides which payments are over.
  const header = await relayer.network.watcher.read(times.resendMs());
  const time = await readBlockTime(relayer.context.ledger, header);
  const used = await countUsed(relayer, late);
  if (state.lease !== lease) return;
  const countWords = createCountWords(relayer, relayer.address);
  if ((await fillGap(relayer, { used, lease, countWords })) === "far") return;
  if (state.lease !== lease) return;
  // Where the key is used elsewhere too, the code below must not try every used nonce in turn.
  if (state.nextNonce !== undefined) state.nextNonce = Math.max(state.nextNonce, used);
  // Where no nonce counts as used, most likely none has a receipt: the resend is what matters.
  const maxMs = late.some(({ nonce }) => nonce < used) ? everywhereMs : unlikelyMs;
  const receipts = await readReceiptsEverywhere(relayer, late, maxMs);
  for (const transaction of late) {
    if (state.lease !== lease) return;
    const receipt = receipts.get(transaction.id);
    if (receipt && !(await isDenied(transaction, used, countWords))) {
      await recordReceipt(relayer, { transaction, receipt, head });
      continue;
    }
    if (transaction.nonce < used) {
      // Perhaps by this very transaction, whose receipt cannot be read. None waits for its nonce.
      if (transaction.unreadableSince !== undefined) continue;
      transaction.nonceUsedSince ??= now;
      transaction.nonceUsedAtBlock ??= header.number;
      const isLost = transaction.isTooLate || now - transaction.nonceUsedSince >= times.loseMs();
      if (isLost && isUsedForGood(relayer, transaction.nonceUsedAtBlock, header.number)) {
        await lose(relayer, transaction);
      }
      continue;
    }
    transaction.nonceUsedSince = undefined;
    transaction.nonceUsedAtBlock = undefined;
    const { content } = newestForm(transaction);
    const wanted = isOver(transaction, time) ? "filler" : content;
    // A relayer that could not pay the last form would not be helped by one that costs more.
    const isDue = !transaction.isTooDear && now - transaction.formedAt >= times.replaceMs();
    if (transaction.nonce === used && (isDue || wanted !== content)) {
      await replaceTransaction(relayer, transaction, { content: wanted, lease });
    } else {
      await dispatchTransaction(relayer, transaction, lease);
    }
  }
}

/**
 * True if an endpoint's receipt does not count: two endpoints count the nonce as unused. One of
 * them is no liar.
 */
async function isDenied(
  { nonce }: TrackedTransaction,
  used: number,
  countWords: CountWords,
): Promise<boolean> {
  return nonce >= used && (await countWords(nonce)).unused >= 2;
}

/** An endpoint that counts too few of the nonces must not hold up the relayer. */
async function countUsed(relayer: Relayer, late: readonly TrackedTransaction[]): Promise<number> {
  const next = relayer.state.nextNonce ?? 0;
  const lowest = Math.min(...late.map(({ nonce }) => nonce));
  const used = await countUsedNonces(relayer, { next, lowest });
  const isRefuted = late.some(({ isNonceRefused, nonce }) => isNonceRefused && nonce >= used);
  return isRefuted ? countRefusedNonces(relayer, { used, next }) : used;
}

/**
 * Without its key, the payments go to another relayer: no reorganisation may bring the nonce back
 * then. With the key, this relayer would fill it.
 */
function isUsedForGood({ signer, network }: Relayer, usedAt: bigint, head: bigint): boolean {
  return signer !== undefined || head - usedAt >= BigInt(network.finalAfter);
}

/**
 * True if no block to come can execute any of its payments: then its nonce is used up for less.
 * Calls of ours have no such time: a claim that is late still counts.
 */
function isOver(transaction: TrackedTransaction, time: bigint): boolean {
  const { payments } = transaction;
  if (newestForm(transaction).content === "calls") return false;
  return payments.every(({ payment }) => payment.validBefore <= time);
}

/** The relayer plans again, where the nonces were far apart. */
export function comeNear({ state, onCapacity }: Relayer): void {
  state.isFarLogged = false;
  if (state.farSince === undefined) return;
  state.farSince = undefined;
  onCapacity();
}

/**
 * The nonce that the chain waits for must be filled, whatever caused the gap. Nothing behind it is
 * ever mined.
 */
async function fillGap(
  relayer: Relayer,
  { used, lease, countWords }: { used: number; lease: Lease; countWords: CountWords },
): Promise<"far" | undefined> {
  const { context, network, signer, state } = relayer;
  if (signer === undefined) return undefined;
  const lowest = Math.min(
    ...[...state.open.values()].map(({ nonce }) => nonce).filter((nonce) => nonce >= used),
  );
  if (lowest - used > maxGap && Number.isFinite(lowest)) {
    const verdict = await giveUpFar(relayer, { used, lowest, lease });
    return verdict === "plausible" ? "far" : undefined;
  }
  comeNear(relayer);
  if (lowest === used || !Number.isFinite(lowest)) return undefined;
  const length = Math.min(lowest - used, network.maxInFlight);
  const nonces = Array.from({ length }, (_, index) => used + index);
  let filled: Awaited<ReturnType<typeof fillNonces>>;
  try {
    filled = await fillNonces({ context, network, signer, lease, nonces, countWords });
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    // The next poll asks it again. The transaction is sent again meanwhile.
    reportSigner(relayer, error);
    return undefined;
  }
  if (filled === "lease_lost") {
    relayer.keeper.lost(lease);
    return undefined;
  }
  if (state.lease === lease) {
    for (const transaction of filled.stored) state.open.set(transaction.id, transaction);
    for (const transaction of filled.stored) {
      await dispatchTransaction(relayer, transaction, lease);
    }
  }
  // Under another lease too: its reconciliation may have read the ledger before that.
  if (filled.isReopened) relayer.reconciling.trigger();
  return undefined;
}

async function lose(relayer: Relayer, transaction: TrackedTransaction): Promise<void> {
  await loseOpen(relayer, transaction);
  relayer.context.logger.error(
    { ...relayer.labels, nonce: transaction.nonce },
    "a foreign transaction has used the relayer's nonce: another program uses the key, or a restored ledger lacks it; the payments are queued again",
  );
}
