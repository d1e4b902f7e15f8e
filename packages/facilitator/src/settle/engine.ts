import { createSingleFlight, type SingleFlight } from "@coinslot/concurrency";
import type { SettlementContext, SettlementNetwork } from "./context.ts";
import { findPayingRelayers, maySweep, patienceOf } from "./fleet/ability.ts";
import {
  createHandOver,
  type HandOver,
  listenToHandOvers,
  queueChannel,
} from "./fleet/hand-over.ts";
import type { ReceivedPayments } from "./fleet/hand-over-message.ts";
import { passOn, planAdopted, planHandedOver, planSweep } from "./fleet/plan-payments.ts";
import { createRetiredRelayers, type RetiredRelayers } from "./fleet/retired-relayers.ts";
import {
  leasesChannel,
  type RelayerSharing,
  startSharingRelayers,
} from "./fleet/share-relayers.ts";
import { createKnownQueues, type KnownQueues } from "./plan/known-queue.ts";
import { planTransactions } from "./plan/planner.ts";
import { type FollowUp, scheduleFollowUp } from "./plan/schedule-follow-up.ts";
import { sendCalls, type WaitingCall } from "./plan/send-calls.ts";
import { createRelayer, stopRelayer } from "./relay/relayer.ts";
import type { Relayer } from "./relay/relayer-context.ts";
import {
  type RelayerFunds,
  type RelayerFundsOptions,
  watchRelayerFunds,
} from "./relay/relayer-funds.ts";
import type { RelayerSigner } from "./relay/relayer-signer.ts";
import {
  learnSighting,
  mayMoveReceipts,
  notifyOthers,
  shareLook,
} from "./watch/look-for-others.ts";
import { listenToSightings, type Sighting, shareSighting } from "./watch/share-sightings.ts";
import { type BlockWatch, startBlockWatch } from "./watch/watch-blocks.ts";

export interface NetworkSettlementOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  signers: readonly RelayerSigner[];
  /** Of relayers that plan nothing any more. */
  retiring: readonly RelayerSigner[];
  funds: Pick<RelayerFundsOptions, "minimumBalance" | "warningBalance" | "onBalance">;
}

/** The settlement engine of one network in one process. */
export interface NetworkSettlement {
  readonly context: SettlementContext;
  readonly network: SettlementNetwork;
  readonly funds: RelayerFunds;
  /** Those that plan. */
  readonly relayers: readonly Relayer[];
  readonly retired: RetiredRelayers;
  /** The payments that this process is to settle. */
  readonly queues: KnownQueues;
  readonly sharing: RelayerSharing;
  readonly handOver: HandOver;
  /** Calls of ours that wait for the next plan. */
  readonly calls: WaitingCall[];
  /** Turns the queue into transactions. */
  readonly planning: SingleFlight;
  readonly watch: BlockWatch;
  /**
   * The next sweep, and whether one is due with the next plan. After a takeover of a relayer, it
   * also adopts payments that processes without one have handed to the former holder.
   */
  readonly sweep: { isDue: boolean; isTakeover: boolean; cancel: (() => void) | undefined };
  readonly followUp: FollowUp;
  /** Ends the subscriptions. */
  readonly subscriptions: (() => Promise<void> | void)[];
  isStopped: boolean;
}

const undoneChannel = "coinslot_undone";

/** Starts to settle the queued payments of a network, and to follow those submitted before. */
export async function startNetworkSettlement(
  options: NetworkSettlementOptions,
): Promise<NetworkSettlement> {
  const settlement = createNetworkSettlement(options);
  const { network, subscriptions, context } = settlement;
  const { ledger } = context;
  const known = network.watcher.latest();
  if (known) network.pace.saw(Number(known.number));
  subscriptions.push(
    network.watcher.subscribe(
      (event) => {
        if ("head" in event) network.pace.saw(Number(event.head.number));
        if (!mayMoveReceipts(event, network)) return;
        for (const { polling, state } of allRelayers(settlement)) {
          if (state.open.size > 0) polling.trigger();
        }
      },
      { pollIntervalMs: Number.POSITIVE_INFINITY },
    ),
  );
  try {
    for (const [channel, handle] of handlersOf(settlement)) {
      subscriptions.push(await ledger.listen(channel, handle));
    }
    const onHandOver = (received: ReceivedPayments) => planHandedOver(settlement, received);
    subscriptions.push(await listenToHandOvers(settlement.context, network.network, onHandOver));
    const onSighting = (sighting: Sighting) => learnSighting(settlement, sighting);
    subscriptions.push(await listenToSightings(ledger, network.network, onSighting));
  } catch (error) {
    await stopNetworkSettlement(settlement);
    throw error;
  }
  scheduleSweep(settlement);
  return settlement;
}

/** The channels of a network's engine, with their handlers. */
function handlersOf(
  settlement: NetworkSettlement,
): readonly (readonly [string, (payload?: string) => void])[] {
  const { network, sharing } = settlement;
  const ifForUs = (handle: () => void) => (payload: string | undefined) => {
    // No payload: the connection was lost for a while, anything may have happened.
    if (payload === undefined || payload === network.network) handle();
  };
  return [
    [queueChannel, ifForUs(() => planSweep(settlement))],
    [
      undoneChannel,
      ifForUs(() => {
        reconcileAll(settlement);
        planSweep(settlement);
      }),
    ],
    [leasesChannel, ifForUs(sharing.trigger)],
  ];
}

/**
 * Resolves when all earlier payments that were not final are reconciled, here or by the process
 * that holds the lease.
 */
export async function whenReconciled({ relayers, retired }: NetworkSettlement): Promise<void> {
  await Promise.all([...relayers.map(({ settled }) => settled), retired.whenReconciled()]);
}

/**
 * Ends in order: new plans, then running work, then the leases. The next holders of the relayers,
 * and a settler for the payments still queued, are notified.
 */
export async function stopNetworkSettlement(settlement: NetworkSettlement): Promise<void> {
  const { sweep, followUp, subscriptions, planning, watch, funds, relayers } = settlement;
  const { sharing, handOver, retired } = settlement;
  settlement.isStopped = true;
  sweep.cancel?.();
  followUp.cancel?.();
  await Promise.all(subscriptions.map((end) => end()));
  await planning.stop();
  for (const { end } of settlement.calls.splice(0)) end("no_relayer");
  await sharing.stop();
  await Promise.all([watch.stop(), funds.stop(), retired.stop(), ...relayers.map(stopRelayer)]);
  passOn(settlement);
  await Promise.all([sharing.notify(), handOver.idle()]);
}

function createNetworkSettlement(options: NetworkSettlementOptions): NetworkSettlement {
  const { context, network, signers, retiring } = options;
  const { ledger, logger, clock, metrics, emit } = context;
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
  const onRequeued = (paymentIds: readonly string[]) => planAdopted(settlement, paymentIds);
  const relayers = signers.map((signer) =>
    createRelayer({
      context,
      network,
      address: signer.address,
      signer,
      onRequeued,
      onReconciled() {
        settlement.sweep.isTakeover = true;
        planSweep(settlement);
      },
      onCapacity: planning.trigger,
      onInsufficientFunds: funds.readNow,
      onReleased() {
        passOn(settlement);
        settlement.sharing.trigger();
      },
      onGivenBack: () => void settlement.sharing.notify(),
    }),
  );
  const sharing = startSharingRelayers({
    context,
    network: network.network,
    relayers,
    retiring: retiring.map(({ address }) => address),
    onRound() {
      passOn(settlement);
      settlement.retired.look();
    },
  });
  const settlement: NetworkSettlement = {
    context,
    network,
    funds,
    planning,
    relayers,
    retired: createRetiredRelayers({
      context,
      network,
      active: signers.map(({ address }) => address),
      retiring,
      isReader: () => settlement.watch.isReader(),
      onRequeued,
      onGivenBack: () => void sharing.notify(),
    }),
    sharing,
    handOver: createHandOver({ context, network: network.network, sharing }),
    queues: createKnownQueues({ ledger, network: network.network, clock }),
    calls: [],
    watch: startBlockWatch({
      context,
      network,
      onReorg() {
        reconcileAll(settlement);
        planSweep(settlement);
        notifyOthers(settlement, undoneChannel);
      },
      onLook: (head) => shareLook({ context, network }, head),
    }),
    sweep: { isDue: false, isTakeover: false, cancel: undefined },
    followUp: { at: Number.POSITIVE_INFINITY, cancel: undefined },
    subscriptions: [],
    isStopped: false,
  };
  return settlement;
}

async function plan(settlement: NetworkSettlement): Promise<void> {
  const { context, network, funds, queues, sweep } = settlement;
  const isSweep = sweep.isDue;
  sweep.isDue = false;
  try {
    await funds.whenRead;
    if (await sendCalls(settlement, settlement.relayers)) settlement.planning.trigger();
    if ((isSweep || queues.hasDropped()) && maySweep(settlement)) {
      const patienceWith = patienceOf(settlement, context.times);
      sweep.isTakeover = false;
      await queues.sweep(patienceWith);
    }
    const relayers = findPayingRelayers(settlement);
    const again = await planTransactions({ context, network, queues, relayers, funds, isSweep });
    if (again !== undefined) scheduleFollowUp(settlement, again);
  } catch (err) {
    queues.invalidate();
    if (settlement.isStopped) return;
    context.logger.warn(
      { err, network: network.network },
      "the queue could not be planned; retrying",
    );
  }
}

/**
 * Finds work without a notification: lost messages, payments of dead processes, expired answers.
 */
function scheduleSweep(settlement: NetworkSettlement): void {
  const { context, sweep, watch } = settlement;
  sweep.cancel = context.clock.setTimer(() => {
    passOn(settlement);
    planSweep(settlement);
    watch.followChain();
    for (const { sweeping } of allRelayers(settlement)) sweeping.trigger();
    if (!settlement.isStopped) scheduleSweep(settlement);
  }, context.times.sweepMs);
}

function reconcileAll(settlement: NetworkSettlement): void {
  for (const { reconciling } of allRelayers(settlement)) reconciling.trigger();
  settlement.retired.look();
}

function allRelayers({ relayers, retired }: NetworkSettlement): readonly Relayer[] {
  return [...relayers, ...retired.all()];
}
