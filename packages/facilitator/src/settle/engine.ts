import type { BlockEvent } from "@coinslot/chain";
import { createSingleFlight, type SingleFlight } from "@coinslot/concurrency";
import type { OrderedPayment } from "../ledger/queries/find-orders.ts";
import type { Lane } from "../ledger/queries/find-queued.ts";
import type { SettlementContext, SettlementNetwork } from "./context.ts";
import { createKnownQueue, type KnownQueue } from "./plan/known-queue.ts";
import { planTransactions } from "./plan/planner.ts";
import { startRelayer, stopRelayer } from "./relay/relayer.ts";
import { isReady, type Relayer } from "./relay/relayer-context.ts";
import {
  type RelayerFunds,
  type RelayerFundsOptions,
  watchRelayerFunds,
} from "./relay/relayer-funds.ts";
import type { RelayerSigner } from "./relay/relayer-signer.ts";
import { listenToSightings, type Sighting, shareSighting } from "./watch/share-sightings.ts";
import { type BlockWatch, startBlockWatch } from "./watch/watch-blocks.ts";

export interface NetworkSettlementOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  signers: readonly RelayerSigner[];
  funds: Pick<RelayerFundsOptions, "minimumBalance" | "warningBalance" | "onBalance">;
}

/** The settlement engine of one network in one process. */
export interface NetworkSettlement {
  readonly context: SettlementContext;
  readonly network: SettlementNetwork;
  readonly funds: RelayerFunds;
  readonly relayers: readonly Relayer[];
  /** The queue as this process knows it. */
  readonly queues: Readonly<Record<Lane, KnownQueue>>;
  /** Turns the queue into transactions. */
  readonly planning: SingleFlight;
  readonly watch: BlockWatch;
  /** The next sweep, and whether one is due with the next plan. */
  readonly sweep: { isDue: boolean; cancel: (() => void) | undefined };
  /** The plan at the last moment for the next block, infinitely far where none is scheduled. */
  readonly followUp: { at: number; cancel: (() => void) | undefined };
  /** Ends the subscriptions. */
  readonly subscriptions: (() => Promise<void> | void)[];
  isStopped: boolean;
}

/** Page size of a queue read, in transactions. This much is then known without another read. */
const transactionsKnown = 4;
const queueChannel = "coinslot_queue";
const undoneChannel = "coinslot_undone";

/** Starts to settle what is queued for a network, and to follow what was submitted before. */
export async function startNetworkSettlement(
  options: NetworkSettlementOptions,
): Promise<NetworkSettlement> {
  const settlement = createNetworkSettlement(options);
  const { context, network, relayers, subscriptions } = settlement;
  const { ledger } = context;
  const isForUs = (payload: string | undefined) =>
    // No payload: the connection was lost for a while, anything may have happened.
    payload === undefined || payload === network.network;
  const known = network.watcher.latest();
  if (known) network.pace.saw(Number(known.number));
  subscriptions.push(
    network.watcher.subscribe(
      (event) => {
        if ("head" in event) network.pace.saw(Number(event.head.number));
        if (!mayHaveMoved(event, network)) return;
        for (const { polling, state } of relayers) if (state.open.size > 0) polling.trigger();
      },
      { pollIntervalMs: Number.POSITIVE_INFINITY },
    ),
  );
  try {
    const onQueue = (payload?: string) => isForUs(payload) && planAnew(settlement);
    subscriptions.push(await ledger.listen(queueChannel, onQueue));
    const onSighting = (sighting: Sighting) => learnSighting(settlement, sighting);
    subscriptions.push(await listenToSightings(ledger, network.network, onSighting));
    const onUndone = (payload?: string) => isForUs(payload) && reconcileAll(settlement);
    subscriptions.push(await ledger.listen(undoneChannel, onUndone));
  } catch (error) {
    await stopNetworkSettlement(settlement);
    throw error;
  }
  scheduleSweep(settlement);
  return settlement;
}

/**
 * Plans a payment that has been queued here. Without one, plans all that the queue may hold now.
 */
export function planQueued(settlement: NetworkSettlement, queued?: OrderedPayment): void {
  const { queues, planning, relayers } = settlement;
  if (queued) queues[queued.payment.settlesAlone ? "alone" : "shared"].add(queued);
  else invalidateQueues(settlement);
  planning.trigger();
  // Only where another process may have to do it.
  if (relayers.some((relayer) => !isReady(relayer))) notifyOthers(settlement, queueChannel);
}

/**
 * Resolves when all that was not final before is reconciled, here or by the process that holds the
 * lease.
 */
export async function whenReconciled({ relayers }: NetworkSettlement): Promise<void> {
  await Promise.all(relayers.map(({ settled }) => settled));
}

/** Ends in order: new plans, then running work, then the leases. */
export async function stopNetworkSettlement(settlement: NetworkSettlement): Promise<void> {
  const { sweep, followUp, subscriptions, planning, watch, funds, relayers } = settlement;
  settlement.isStopped = true;
  sweep.cancel?.();
  followUp.cancel?.();
  await Promise.all(subscriptions.map((end) => end()));
  await planning.stop();
  await Promise.all([watch.stop(), funds.stop(), ...relayers.map(stopRelayer)]);
}

function createNetworkSettlement(options: NetworkSettlementOptions): NetworkSettlement {
  const { context, network, signers } = options;
  const { ledger, logger, clock, metrics, emit } = context;
  const queueOf = (lane: Lane) =>
    createKnownQueue({
      ledger,
      network: network.network,
      lane,
      maxKnown: transactionsKnown * network.limits.maxPayments,
    });
  const funds = watchRelayerFunds({
    ...options.funds,
    network: network.network,
    rpc: network.rpc,
    addresses: signers.map(({ address }) => address),
    clock,
    logger,
    metrics,
    emit,
    isReader: () => settlement.watch.isReader(),
    readMs: context.times.idleMs,
    onRead: (balances) => shareSighting(context, network.network, { balances }),
  });
  const planning = createSingleFlight(() => plan(settlement));
  const settlement: NetworkSettlement = {
    context,
    network,
    funds,
    planning,
    queues: { shared: queueOf("shared"), alone: queueOf("alone") },
    relayers: signers.map((signer) =>
      startRelayer({
        context,
        network,
        signer,
        onQueueChanged: () => invalidateQueues(settlement),
        onCapacity: planning.trigger,
        onInsufficientFunds: funds.readNow,
      }),
    ),
    watch: startBlockWatch({
      context,
      network,
      onReorg() {
        reconcileAll(settlement);
        planAnew(settlement);
        notifyOthers(settlement, undoneChannel);
      },
      onLook: () => shareLook(settlement),
    }),
    sweep: { isDue: false, cancel: undefined },
    followUp: { at: Number.POSITIVE_INFINITY, cancel: undefined },
    subscriptions: [],
    isStopped: false,
  };
  return settlement;
}

/**
 * Whether a receipt may have changed before its next poll is due: blocks left the chain, or nodes
 * announce each new one.
 */
function mayHaveMoved(event: BlockEvent, { rpc }: SettlementNetwork): boolean {
  return rpc.announcesHeads || (event.type !== "advanced" && event.type !== "reset");
}

/** Notifies the other processes of the head, and of the tip that is read with it now and then. */
async function shareLook({ context, network }: NetworkSettlement): Promise<void> {
  const head = network.watcher.latest();
  const tip = await network.fees.refreshTip(context.times.idleMs / 2);
  shareSighting(context, network.network, { head, tip });
}

function learnSighting({ network, funds }: NetworkSettlement, sighting: Sighting): void {
  const { head, tip, balances = [] } = sighting;
  if (head) network.watcher.learn(head);
  if (tip !== undefined) network.fees.learnTip(tip);
  funds.learn(balances);
}

async function plan(settlement: NetworkSettlement): Promise<void> {
  const { context, network, funds, queues, sweep } = settlement;
  const isSweep = sweep.isDue;
  sweep.isDue = false;
  try {
    await funds.whenRead;
    const relayers = findPayingRelayers(settlement);
    const again = await planTransactions({ context, network, queues, relayers, funds, isSweep });
    if (again !== undefined) scheduleFollowUp(settlement, again);
  } catch (err) {
    invalidateQueues(settlement);
    if (settlement.isStopped) return;
    context.logger.warn(
      { err, network: network.network },
      "the queue could not be planned; retrying",
    );
  }
}

/**
 * Relayers with gas money. If none has any, all: the little that is left may be enough for the
 * queue.
 */
function findPayingRelayers({ relayers, funds }: NetworkSettlement): readonly Relayer[] {
  const able = relayers.filter(({ signer }) => funds.sufficeFor(signer.address));
  return able.length > 0 ? able : relayers;
}

/**
 * Finds work without a notification: lost messages, payments of dead processes, expired answers.
 */
function scheduleSweep(settlement: NetworkSettlement): void {
  const { context, sweep, watch, relayers } = settlement;
  sweep.cancel = context.clock.setTimer(() => {
    sweep.isDue = true;
    planAnew(settlement);
    watch.followChain();
    for (const { sweeping } of relayers) sweeping.trigger();
    if (!settlement.isStopped) scheduleSweep(settlement);
  }, context.times.sweepMs);
}

/** Plans at this time, unless a plan is due before that. */
function scheduleFollowUp(settlement: NetworkSettlement, at: number): void {
  const { followUp, planning, context, isStopped } = settlement;
  if (isStopped || followUp.at <= at) return;
  followUp.cancel?.();
  followUp.at = at;
  const delayMs = Math.max(0, at - context.clock.now());
  followUp.cancel = context.clock.setTimer(() => {
    followUp.at = Number.POSITIVE_INFINITY;
    planning.trigger();
  }, delayMs);
}

/** The known queue may be wrong. */
function planAnew(settlement: NetworkSettlement): void {
  invalidateQueues(settlement);
  settlement.planning.trigger();
}

function invalidateQueues({ queues }: NetworkSettlement): void {
  queues.shared.invalidate();
  queues.alone.invalidate();
}

function reconcileAll({ relayers }: NetworkSettlement): void {
  for (const { reconciling } of relayers) reconciling.trigger();
}

function notifyOthers({ context, network }: NetworkSettlement, channel: string): void {
  context.ledger.notify(channel, network.network).catch((err: unknown) => {
    context.logger.warn({ err, network: network.network }, "other processes could not be notified");
  });
}
