import { RpcClosedError } from "@coinslot/chain";
import { toLowerHex } from "@coinslot/protocol";
import { z } from "zod";
import type { Broadcast } from "../ledger/store-transaction.ts";
import { fillNonces } from "./fill-nonces.ts";
import { keepLease } from "./lease-keeper.ts";
import { createLookPace } from "./look-pace.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import {
  countInFlight,
  learnForms,
  newestForm,
  type RelayerState,
  type TrackedTransaction,
  trackedFrom,
} from "./relayer-state.ts";
import { signReplacement } from "./replace-transaction.ts";
import { resolveTransaction } from "./resolve-transaction.ts";
import { sendTransaction } from "./send-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "./settlement-context.ts";
import { createSingleFlight } from "./single-flight.ts";
import { parseReceipt, receiptCall, type TransactionReceipt } from "./transaction-receipt.ts";

export interface RelayerOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  signer: RelayerSigner;
  /** Called whenever there may be room for another transaction. */
  onRoom: () => void;
  /** Called when a node says that the relayer cannot pay. */
  onPoor: () => void;
}

/** One address that sends transactions, in this process as long as that holds its lease. */
export interface Relayer {
  readonly signer: RelayerSigner;
  readonly state: RelayerState;
  /** Whether transactions may be planned: the lease is held, and what was open before is known. */
  isReady(): boolean;
  /** Resolves when this process is ready to plan, or another one holds the lease. */
  settled(): Promise<void>;
  /** Sends a transaction that has been stored, and follows it to its end. */
  launch(transaction: TrackedTransaction): void;
  /** To be called when the ledger refused to write under the lease. */
  leaseLost(): void;
  /** Reads the open transactions from the ledger again. */
  reload(): void;
  /** Looks for receipts. */
  look(): void;
  stop(): Promise<void>;
}

const nonceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(Number);
/** So often may a node say "never" until its word is taken. */
const mostRefusals = 3;

/** Starts to hold a relayer's lease, and to follow its open transactions. */
export function startRelayer(options: RelayerOptions): Relayer {
  const { context, network, signer, onRoom, onPoor } = options;
  const { ledger, board, clock, times, logger, metrics, checkpoint } = context;
  const { rpc, watcher } = network;
  const labels = { network: network.network, relayer: signer.address };
  const state: RelayerState = { lease: undefined, nextNonce: undefined, open: new Map() };
  const identity = { network: network.network, relayer: toLowerHex(signer.address) };
  const sending = new Set<Promise<void>>();
  const pace = createLookPace({ mostMs: network.pollMs });
  let cancelLook: (() => void) | undefined;
  let lookAt = Number.POSITIVE_INFINITY;
  let isStopped = false;
  let tellSettled: () => void = () => undefined;
  const isSettled = new Promise<void>((resolve) => {
    tellSettled = resolve;
  });

  const reloading = createSingleFlight(() => guarded("reconcile", reconcile));
  const looking = createSingleFlight(() => guarded("follow its transactions", follow));
  const keeper = keepLease({
    leases: ledger.leases,
    name: `relayer:${network.network}:${identity.relayer}`,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    logger,
    onChange(lease) {
      state.lease = lease;
      state.nextNonce = undefined;
      state.open.clear();
      logger.info({ ...labels, epoch: lease?.epoch }, lease ? "relayer taken" : "relayer given up");
      if (lease) reloading.trigger();
    },
    onAnswer: () => state.lease === undefined && tellSettled(),
  });

  async function guarded(purpose: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (isStopped || error instanceof RpcClosedError) return;
      logger.warn({ err: error, ...labels }, `the relayer could not ${purpose}; it tries again`);
      scheduleLook(network.pollMs);
    }
  }

  /** Compares ledger and chain under a lease that is new, or after something left the chain. */
  async function reconcile(): Promise<void> {
    const { lease } = state;
    if (lease === undefined) return;
    const [open, highest = -1] = await Promise.all([
      ledger.findOpenTransactions(identity),
      ledger.findHighestNonce(identity),
    ]);
    const next = Math.max(state.nextNonce ?? 0, highest + 1);
    const used = await countUsedNonces(next);
    if (state.lease?.epoch !== lease.epoch) return;
    for (const transaction of open) {
      const tracked = state.open.get(transaction.id);
      if (tracked) learnForms(tracked, transaction);
      else state.open.set(transaction.id, trackedFrom(transaction, clock.now()));
    }
    await follow();
    for (const transaction of state.open.values()) {
      if (transaction.sentAt === undefined && !transaction.isIncluded) await send(transaction);
    }
    if (state.lease?.epoch !== lease.epoch) return;
    // Only now: what breaks off before this is done again from its beginning.
    state.nextNonce = Math.max(state.nextNonce ?? 0, next, used);
    tellSettled();
    onRoom();
  }

  /**
   * How many nonces of the relayer stand in blocks. A number beyond those that we have used would
   * leave a gap that nothing passes: it counts only as far as it is said twice.
   */
  async function countUsedNonces(next: number): Promise<number> {
    const count = { method: "eth_getTransactionCount", params: [signer.address, "latest"] };
    const used = nonceSchema.parse(await rpc.request(count));
    if (used <= next) return used;
    const again = nonceSchema.parse(await rpc.request(count));
    if (again !== used) logger.warn({ ...labels, used, again }, "a node was wrong about the nonce");
    return Math.min(used, again);
  }

  /** Reads receipts, records outcomes, and sends again or replaces what takes too long. */
  async function follow(): Promise<void> {
    if (state.lease === undefined || state.open.size === 0) return;
    const open = [...state.open.values()].sort((a, b) => a.nonce - b.nonce);
    const receipts = await readReceipts(open);
    const missing: TrackedTransaction[] = [];
    for (const transaction of open) {
      const receipt = receipts.get(transaction.id);
      notice(transaction, receipt !== undefined);
      if (receipt) await recordReceipt(transaction, receipt);
      else missing.push(transaction);
    }
    if (missing.length < open.length) onRoom();
    await chase(missing);
    metrics.inFlight.set(labels, countInFlight(state));
    if (state.open.size === 0) return;
    scheduleLook(pace.next());
  }

  function notice(transaction: TrackedTransaction, isIncluded: boolean): void {
    if (isIncluded && !transaction.isIncluded && transaction.sentAt !== undefined) {
      pace.found(clock.now() - transaction.sentAt);
    }
    transaction.isIncluded = isIncluded;
  }

  /** Unless a look is due before that: who comes later puts nothing off. */
  function scheduleLook(delayMs: number): void {
    const wished = clock.now() + delayMs;
    if (isStopped || lookAt <= wished) return;
    cancelLook?.();
    lookAt = wished;
    cancelLook = clock.setTimer(() => {
      lookAt = Number.POSITIVE_INFINITY;
      if (state.nextNonce === undefined) reloading.trigger();
      else looking.trigger();
    }, delayMs);
  }

  async function readReceipts(
    open: readonly TrackedTransaction[],
  ): Promise<Map<string, TransactionReceipt>> {
    const asked = open.flatMap(({ id, broadcasts }) =>
      broadcasts.map(({ hash }) => ({ id, hash })),
    );
    const outcomes = await rpc.requestMany(asked.map(({ hash }) => receiptCall(hash)));
    const receipts = new Map<string, TransactionReceipt>();
    for (const [index, { id }] of asked.entries()) {
      const outcome = outcomes[index];
      if (outcome && !outcome.ok) throw outcome.error;
      const receipt = parseReceipt(outcome?.result);
      if (receipt) receipts.set(id, receipt);
    }
    return receipts;
  }

  async function recordReceipt(
    transaction: TrackedTransaction,
    receipt: TransactionReceipt,
  ): Promise<void> {
    await checkpoint("included");
    const { transactionHash, blockNumber, blockHash, gasUsed } = receipt;
    logger.debug({ ...labels, transaction: transactionHash, blockNumber }, "transaction included");
    const head = watcher.latest()?.number ?? 0n;
    const depth = Math.max(0, Number(head) - blockNumber);
    const { outcomes, isComplete } = await resolveTransaction({
      network,
      transaction,
      receipt,
      depth,
    });
    const isNews = outcomes.some(({ confirmed, failed, requeued }) =>
      [confirmed, requeued, ...(failed ?? [])].some((part) => part && part.ids.length > 0),
    );
    if (!isNews && !isComplete) return;
    const inclusion = { transactionHash, blockNumber, blockHash };
    const changed = await ledger.recordOutcomes(
      outcomes,
      isComplete ? { id: transaction.id, inclusion, gasUsed } : undefined,
    );
    await checkpoint("recorded");
    transaction.payments = transaction.payments.filter(
      ({ payment }) => network.serveAfter(payment) > depth,
    );
    if (isComplete) {
      state.open.delete(transaction.id);
      metrics.transactions.inc({ network: network.network, event: "settled" });
    }
    board.publish(changed);
  }

  /** What no block holds: is sent again, then replaced; or its nonce was used by somebody else. */
  async function chase(missing: readonly TrackedTransaction[]): Promise<void> {
    const now = clock.now();
    const late = missing.filter(
      ({ sentAt, formedAt }) => now - (sentAt ?? formedAt) >= times.resendMs,
    );
    if (late.length === 0) return;
    const used = await countUsedNonces(state.nextNonce ?? 0);
    await fillGap(used);
    // Where the key is used elsewhere too, what follows must not try every used nonce in turn.
    if (state.nextNonce !== undefined) state.nextNonce = Math.max(state.nextNonce, used);
    for (const transaction of late) {
      if (transaction.nonce < used) {
        transaction.nonceUsedSince ??= now;
        if (now - transaction.nonceUsedSince >= times.loseMs) await lose(transaction);
        continue;
      }
      transaction.nonceUsedSince = undefined;
      const isNext = transaction.nonce === used;
      if (isNext && now - transaction.formedAt >= times.replaceMs) {
        await replace(transaction, newestForm(transaction).content);
      } else {
        await send(transaction);
      }
    }
  }

  /** What the chain waits for must be there, whoever caused the gap: nothing behind it is ever mined. */
  async function fillGap(used: number): Promise<void> {
    const { lease } = state;
    const lowest = Math.min(
      ...[...state.open.values()].map(({ nonce }) => nonce).filter((nonce) => nonce >= used),
    );
    if (lease === undefined || lowest === used || !Number.isFinite(lowest)) return;
    const length = Math.min(lowest - used, network.mostInFlight);
    const nonces = Array.from({ length }, (_, index) => used + index);
    const filled = await fillNonces({ context, network, signer, lease, nonces });
    if (filled === "lease_lost") return keeper.lost(lease);
    for (const transaction of filled.stored) state.open.set(transaction.id, transaction);
    for (const transaction of filled.stored) await send(transaction);
    if (filled.isReopened) reloading.trigger();
  }

  async function lose(transaction: TrackedTransaction): Promise<void> {
    await ledger.loseTransaction(transaction.id);
    state.open.delete(transaction.id);
    metrics.transactions.inc({ network: network.network, event: "lost" });
    logger.error(
      { ...labels, nonce: transaction.nonce },
      "a transaction that is not ours has used the relayer's nonce: the key is used elsewhere; the payments are queued again",
    );
    onRoom();
  }

  async function replace(
    transaction: TrackedTransaction,
    content: Broadcast["content"],
  ): Promise<void> {
    const { lease } = state;
    if (lease === undefined) return;
    const form = await signReplacement({ network, signer, transaction, content });
    transaction.formedAt = clock.now();
    if (form === undefined) {
      logger.warn(
        { ...labels, nonce: transaction.nonce },
        "the chain asks for more than the cap on fees; the transaction waits",
      );
      return send(transaction);
    }
    const stored = await ledger.storeReplacement(lease, { id: transaction.id, broadcast: form });
    if (stored === "lease_lost") return keeper.lost(lease);
    if (stored !== "stored") return reloading.trigger();
    transaction.broadcasts.push({ ...form, createdAt: context.now() });
    metrics.transactions.inc({ network: network.network, event: "replaced" });
    await send(transaction);
  }

  async function send(transaction: TrackedTransaction): Promise<void> {
    const { lease } = state;
    if (lease === undefined) return;
    // A process that slept since it stored this may have been replaced by another meanwhile.
    if (!(await ledger.leases.isHeld(lease))) return keeper.lost(lease);
    const form = newestForm(transaction);
    transaction.sentAt = clock.now();
    const result = await sendTransaction({ context, network, broadcast: form });
    await checkpoint("broadcast");
    if (result.outcome !== "refused") return;
    switch (result.error) {
      case "already_known":
      case "busy":
      case "unknown":
        return;
      case "nonce_too_low":
        return looking.trigger();
      case "nonce_too_high": {
        for (const other of state.open.values()) {
          if (other.nonce < transaction.nonce) other.sentAt = clock.now() - times.resendMs;
        }
        return;
      }
      case "underpriced":
      case "fee_too_low":
        // The next look replaces it, once: where that does not help, it takes its time like any other,
        // or a node that finds every price too low would run the fee up.
        if (transaction.broadcasts.length > 1) return;
        transaction.formedAt = Math.min(transaction.formedAt, clock.now() - times.replaceMs);
        transaction.sentAt = clock.now() - times.resendMs;
        return;
      case "insufficient_funds":
        return onPoor();
      case "too_large":
      case "invalid": {
        transaction.refusals += result.error === "too_large" ? mostRefusals : 1;
        if (transaction.refusals < mostRefusals || form.content === "filler") return;
        return replace(transaction, "filler");
      }
    }
  }

  return {
    signer,
    state,
    isReady: () => state.lease !== undefined && state.nextNonce !== undefined,
    settled: () => isSettled,
    launch(transaction) {
      state.open.set(transaction.id, transaction);
      metrics.inFlight.set(labels, countInFlight(state));
      const sent = guarded("send a transaction", () => send(transaction)).finally(() => {
        sending.delete(sent);
        const sinceMs = clock.now() - (transaction.sentAt ?? clock.now());
        scheduleLook(Math.max(0, pace.first() - sinceMs));
      });
      sending.add(sent);
    },
    leaseLost() {
      if (state.lease) keeper.lost(state.lease);
    },
    reload: reloading.trigger,
    look: looking.trigger,
    async stop() {
      isStopped = true;
      cancelLook?.();
      await Promise.all([reloading.stop(), looking.stop(), ...sending]);
      await keeper.stop();
    },
  };
}
