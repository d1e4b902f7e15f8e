import type { RpcRequester } from "@coinslot/chain";
import type { Network } from "@coinslot/protocol";
import type { OrderedPayment } from "../ledger/queries/find-orders.ts";
import type { Lane } from "../ledger/queries/find-queued.ts";
import type { SettlementContext, SettlementNetwork } from "./context.ts";
import { createKnownQueue } from "./plan/known-queue.ts";
import { planTransactions } from "./plan/planner.ts";
import { startRelayer, stopRelayer } from "./relay/relayer.ts";
import { isReady, type Relayer } from "./relay/relayer-context.ts";
import {
  type RelayerFunds,
  type RelayerFundsOptions,
  watchRelayerFunds,
} from "./relay/relayer-funds.ts";
import type { RelayerSigner } from "./relay/relayer-signer.ts";
import { createSingleFlight } from "./single-flight.ts";
import { startBlockWatch } from "./watch/watch-blocks.ts";

export interface NetworkSettlementOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  signers: readonly RelayerSigner[];
  funds: Pick<RelayerFundsOptions, "minimumBalance" | "warningBalance" | "onBalance">;
}

/** The settlement engine of one network in one process. */
export interface NetworkSettlement {
  readonly rpc: RpcRequester;
  readonly funds: RelayerFunds;
  readonly relayers: readonly Relayer[];
  /** To be called with a payment that has been queued here, or without one if the queue may have changed otherwise. */
  notify(queued?: OrderedPayment): void;
  /** Resolves when what was not final before has been reconciled, here or by who holds the lease. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

/** For so many transactions the queue is read at a time, and known without reading it again. */
const transactionsKnown = 4;
const queueChannel = "coinslot_queue";
const undoneChannel = "coinslot_undone";

/** Starts to settle what is queued for a network, and to follow what was submitted before. */
export async function startNetworkSettlement(
  options: NetworkSettlementOptions,
): Promise<NetworkSettlement> {
  const { context, network, signers } = options;
  const { ledger, logger, times, clock, metrics, emit } = context;
  let cancelSweep: (() => void) | undefined;
  let isStopped = false;
  let isSweep = false;

  const funds = watchRelayerFunds({
    ...options.funds,
    network: network.network,
    rpc: network.rpc,
    addresses: signers.map(({ address }) => address),
    clock,
    logger,
    metrics,
    emit,
  });
  const queueOf = (lane: Lane) =>
    createKnownQueue({
      ledger,
      network: network.network,
      lane,
      maxKnown: transactionsKnown * network.limits.maxPayments,
    });
  const queues = { shared: queueOf("shared"), alone: queueOf("alone") };
  const planning = createSingleFlight(async () => {
    const sweeps = isSweep;
    isSweep = false;
    try {
      await funds.looked;
      await planTransactions({
        context,
        network,
        queues,
        relayers: whoCanPay(),
        funds,
        isSweep: sweeps,
      });
    } catch (error) {
      doubtQueues();
      if (isStopped) return;
      logger.warn(
        { err: error, network: network.network },
        "the queue could not be planned; it is tried again",
      );
    }
  });
  const relayers = signers.map((signer) =>
    startRelayer({
      context,
      network,
      signer,
      onQueueChanged: doubtQueues,
      onCapacity: planning.trigger,
      onInsufficientFunds: funds.look,
    }),
  );
  const reload = () => {
    for (const relayer of relayers) relayer.reconciling.trigger();
  };
  const watch = startBlockWatch({
    context,
    network,
    onReorg() {
      reload();
      planAnew();
      tell(undoneChannel);
    },
  });
  const unsubscribe = network.watcher.subscribe(() => {
    for (const { polling, state } of relayers) if (state.open.size > 0) polling.trigger();
  });
  const listening: (() => Promise<void>)[] = [];
  try {
    listening.push(
      await ledger.listen(queueChannel, (payload) => forUs(payload) && planAnew()),
      await ledger.listen(undoneChannel, (payload) => forUs(payload) && reload()),
    );
  } catch (error) {
    await stop();
    throw error;
  }
  sweep();

  function doubtQueues(): void {
    queues.shared.invalidate();
    queues.alone.invalidate();
  }

  /** The queue may not be what is known of it. */
  function planAnew(): void {
    doubtQueues();
    planning.trigger();
  }

  /** What nobody told us of: lost messages, payments of dead processes, answers whose time is over. */
  function sweep(): void {
    cancelSweep = clock.setTimer(() => {
      isSweep = true;
      planAnew();
      watch.look();
      for (const relayer of relayers) relayer.sweeping.trigger();
      if (!isStopped) sweep();
    }, times.sweepMs);
  }

  /** Those with gas money. If none has any, all: the little that is left may be enough for what waits. */
  function whoCanPay(): readonly Relayer[] {
    const able = relayers.filter(({ signer }) => funds.sufficeFor(signer.address));
    return able.length > 0 ? able : relayers;
  }

  /** No payload: the connection was lost for a while, anything may have happened. */
  function forUs(payload: string | undefined): boolean {
    return payload === undefined || payload === network.network;
  }

  function tell(channel: string): void {
    ledger.notify(channel, network.network satisfies Network).catch((error: unknown) => {
      logger.warn({ err: error, network: network.network }, "other processes could not be told");
    });
  }

  async function stop(): Promise<void> {
    isStopped = true;
    cancelSweep?.();
    unsubscribe();
    await Promise.all(listening.map((end) => end()));
    await planning.stop();
    await Promise.all([
      watch.stop(),
      funds.stop(),
      ...relayers.map((relayer) => stopRelayer(relayer)),
    ]);
  }

  return {
    rpc: network.rpc,
    funds,
    relayers,
    notify(queued) {
      if (queued) queues[queued.payment.isAlone ? "alone" : "shared"].add(queued);
      else doubtQueues();
      planning.trigger();
      // Only where somebody else may have to do it.
      if (relayers.some((relayer) => !isReady(relayer))) tell(queueChannel);
    },
    async ready() {
      await Promise.all(relayers.map((relayer) => relayer.settled));
    },
    stop,
  };
}
