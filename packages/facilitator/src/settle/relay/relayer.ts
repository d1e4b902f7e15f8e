import { RpcClosedError } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import { toLowerHex } from "@coinslot/protocol";
import { leaseNameOf } from "../../ledger/relayer-lease.ts";
import { closedTooSoon } from "../unavailable-errors.ts";
import { dispatchTransaction } from "./dispatch-transaction.ts";
import { keepLease } from "./lease-keeper.ts";
import { createReceiptPollInterval } from "./receipt-poll-interval.ts";
import { compareLedger, pollTransactions, reconcile } from "./reconcile.ts";
import {
  followHeads,
  isBusy,
  type Relayer,
  type RelayerOptions,
  schedulePoll,
} from "./relayer-context.ts";
import { countInFlight, type TrackedTransaction } from "./relayer-state.ts";

/**
 * The name of the lease of those who follow a relayer without its key. It is another one: a process
 * that gets the key takes the relayer's own lease, whoever follows it.
 */
function keylessLeaseNameOf({ network, relayer }: Relayer["identity"]): string {
  return `keyless:${network}:${relayer}`;
}

/** Makes a relayer. While it holds its lease, it follows its open transactions. */
export function createRelayer(options: RelayerOptions): Relayer {
  const { context, network, address, signer } = options;
  const { ledger, clock, times, logger } = context;
  const identity = { network: network.network, relayer: toLowerHex(address) };
  const { settled, resolveSettled, rejectSettled } = createSettled();
  const relayer: Relayer = {
    ...options,
    identity,
    labels: { network: network.network, relayer: address },
    state: {
      lease: undefined,
      nextNonce: undefined,
      open: new Map(),
      farSince: undefined,
      isFarLogged: false,
    },
    pace: createReceiptPollInterval({ maxMs: network.pollMs, blocks: network.blocks }),
    isStoring: false,
    sending: new Set(),
    dispatchMs: 20,
    nextPoll: { at: Number.POSITIVE_INFINITY, cancel: undefined },
    unfollow: undefined,
    isStopped: false,
    leaving: undefined,
    isStale: true,
    settled,
    resolveSettled,
    rejectSettled,
    reconciling: createSingleFlight(() => attempt(relayer, "reconcile", () => reconcile(relayer))),
    sweeping: createSingleFlight(() =>
      attempt(relayer, "compare itself with the ledger", () => compareLedger(relayer)),
    ),
    polling: createSingleFlight(() =>
      attempt(relayer, "follow its transactions", async () => {
        await pollTransactions(relayer);
        if (relayer.leaving && !isBusy(relayer)) await endLeaving(relayer);
      }),
    ),
    keeper: keepLease({
      leases: ledger.leases,
      name: signer ? leaseNameOf(identity) : keylessLeaseNameOf(identity),
      owner: ledger.processId,
      ttlMs: times.leaseMs,
      clock,
      logger,
      onChange: (lease) => changeLease(relayer, lease),
      isEager: false,
    }),
  };
  return relayer;
}

/** Share of the newest dispatch in the usual time of one. */
const newestShare = 1 / 8;

/**
 * Sends a transaction that has been stored, and follows it to its end.
 *
 * @param plannedAt time by the clock at which its plan began
 */
export function launchTransaction(
  relayer: Relayer,
  transaction: TrackedTransaction,
  plannedAt: number,
): void {
  const { state, labels, pace, sending } = relayer;
  const { clock, metrics } = relayer.context;
  transaction.maybeSent = false;
  state.open.set(transaction.id, transaction);
  metrics.inFlight.set(labels, countInFlight(state));
  followHeads(relayer);
  const sent = attempt(relayer, "send a transaction", () =>
    dispatchTransaction(relayer, transaction, state.lease),
  ).finally(() => {
    sending.delete(sent);
    relayer.dispatchMs += (clock.now() - plannedAt - relayer.dispatchMs) * newestShare;
    const sinceMs = clock.now() - (transaction.sentAt ?? clock.now());
    schedulePoll(relayer, Math.max(0, pace.first() - sinceMs));
  });
  sending.add(sent);
}

/**
 * Gives the lease back for another process. It waits until no transaction of the relayer is in
 * flight or about to be, or for a time. The next holder follows what is left.
 */
export function leaveRelayer(relayer: Relayer, { withinMs }: { withinMs: number }): void {
  const { state, context, leaving } = relayer;
  if (leaving !== undefined || state.lease === undefined) return;
  relayer.leaving = context.clock.setTimer(() => void endLeaving(relayer), withinMs);
  if (!isBusy(relayer)) void endLeaving(relayer);
}

async function endLeaving(relayer: Relayer): Promise<void> {
  const { context, labels, keeper } = relayer;
  try {
    await keeper.giveBack();
    relayer.onGivenBack();
  } catch (err) {
    context.logger.warn({ err, ...labels }, "a relayer could not be given back; it expires");
  }
}

/** Ends running work, and gives the lease back. */
export async function stopRelayer(relayer: Relayer): Promise<void> {
  const { sweeping, reconciling, polling, sending, nextPoll } = relayer;
  relayer.isStopped = true;
  relayer.leaving?.();
  nextPoll.cancel?.();
  followHeads(relayer);
  await Promise.all([sweeping.stop(), reconciling.stop(), polling.stop(), ...sending]);
  relayer.rejectSettled(closedTooSoon());
  await relayer.keeper.stop();
}

function createSettled(): Pick<Relayer, "settled" | "resolveSettled" | "rejectSettled"> {
  let resolveSettled: () => void = () => undefined;
  let rejectSettled: (error: Error) => void = () => undefined;
  const settled = new Promise<void>((resolve, reject) => {
    resolveSettled = resolve;
    rejectSettled = reject;
  });
  // There may be no caller of `ready`.
  settled.catch(() => undefined);
  return { settled, resolveSettled, rejectSettled };
}

function changeLease(relayer: Relayer, lease: Relayer["state"]["lease"]): void {
  const { state, labels, context } = relayer;
  state.lease = lease;
  state.nextNonce = undefined;
  state.farSince = undefined;
  state.isFarLogged = false;
  state.open.clear();
  context.metrics.inFlight.set(labels, 0);
  followHeads(relayer);
  relayer.leaving?.();
  relayer.leaving = undefined;
  const message = lease ? "relayer taken" : "relayer given up";
  context.logger.info({ ...labels, epoch: lease?.epoch }, message);
  if (lease) relayer.reconciling.trigger();
  else if (!relayer.isStopped) relayer.onReleased();
}

/** Runs work that the next poll repeats, where a node or the ledger fails. */
async function attempt(
  relayer: Relayer,
  purpose: string,
  work: () => Promise<void>,
): Promise<void> {
  const { context, network, labels } = relayer;
  try {
    await work();
  } catch (err) {
    if (relayer.isStopped || err instanceof RpcClosedError) return;
    context.logger.warn({ err, ...labels }, `the relayer could not ${purpose}; retrying`);
    schedulePoll(relayer, network.pollMs);
  }
}
