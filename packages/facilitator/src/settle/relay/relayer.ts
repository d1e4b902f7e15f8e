import { RpcClosedError } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import { toLowerHex } from "@coinslot/protocol";
import { closedTooSoon } from "../unavailable-errors.ts";
import { dispatchTransaction } from "./dispatch-transaction.ts";
import { keepLease } from "./lease-keeper.ts";
import { createLookPace } from "./receipt-poll-interval.ts";
import { compareLedger, pollTransactions, reconcile } from "./reconcile.ts";
import { followHeads, type Relayer, type RelayerOptions, schedulePoll } from "./relayer-context.ts";
import { countInFlight, type TrackedTransaction } from "./relayer-state.ts";

/** Starts to hold a relayer's lease, and to follow its open transactions. */
export function startRelayer(options: RelayerOptions): Relayer {
  const { context, network, signer } = options;
  const { ledger, clock, times, logger } = context;
  const identity = { network: network.network, relayer: toLowerHex(signer.address) };
  const { settled, resolveSettled, rejectSettled } = createSettled();
  const relayer: Relayer = {
    ...options,
    identity,
    labels: { network: network.network, relayer: signer.address },
    state: { lease: undefined, nextNonce: undefined, open: new Map() },
    pace: createLookPace({ maxMs: network.pollMs, blocks: network.blocks }),
    sending: new Set(),
    dispatchMs: 20,
    nextPoll: { at: Number.POSITIVE_INFINITY, cancel: undefined },
    unfollow: undefined,
    isStopped: false,
    isStale: true,
    settled,
    resolveSettled,
    rejectSettled,
    reconciling: createSingleFlight(() => attempt(relayer, "reconcile", () => reconcile(relayer))),
    sweeping: createSingleFlight(() =>
      attempt(relayer, "compare itself with the ledger", () => compareLedger(relayer)),
    ),
    polling: createSingleFlight(() =>
      attempt(relayer, "follow its transactions", () => pollTransactions(relayer)),
    ),
    keeper: keepLease({
      leases: ledger.leases,
      name: `relayer:${network.network}:${identity.relayer}`,
      owner: ledger.processId,
      ttlMs: times.leaseMs,
      clock,
      logger,
      onChange: (lease) => changeLease(relayer, lease),
      onAnswer: () => relayer.state.lease === undefined && relayer.resolveSettled(),
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

/** Ends running work, and gives the lease back. */
export async function stopRelayer(relayer: Relayer): Promise<void> {
  const { sweeping, reconciling, polling, sending, nextPoll } = relayer;
  relayer.isStopped = true;
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
  state.open.clear();
  followHeads(relayer);
  const message = lease ? "relayer taken" : "relayer given up";
  context.logger.info({ ...labels, epoch: lease?.epoch }, message);
  if (lease) relayer.reconciling.trigger();
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
