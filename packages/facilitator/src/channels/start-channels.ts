import type { Address, Network } from "@coinslot/protocol";
import { createSignerRecovery } from "../evm/recover-signer.ts";
import { readWatch } from "../ledger/channels/channel-watch.ts";
import type { ChannelMetrics } from "../settle/channel-metrics.ts";
import type { SettlementContext } from "../settle/context.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { startPollLoop } from "../settle/pace/poll-loop.ts";
import { keepLease } from "../settle/relay/lease-keeper.ts";
import type { StopBoard } from "../stops/stop-board.ts";
import {
  auditMsOf,
  type ChannelSettings,
  defaultCallerGasPerHour,
  longestLookMs,
  minDepositWorthGas,
} from "./channel-settings.ts";
import type { ChannelsContext } from "./channels-context.ts";
import type { AskedClaim } from "./claims/asked-claims.ts";
import { claimBeforeClose } from "./claims/claim-before-close.ts";
import { createClaimRounds } from "./claims/claim-rounds.ts";
import type { ClaimPlan } from "./claims/plan-claims.ts";
import { type ChannelDeposits, startDeposits } from "./deposits/channel-deposits.ts";
import { type NetworkRefunds, startChannelRefunds } from "./refunds/start-channel-refunds.ts";
import { createChannelSales, type RunningChannelSales } from "./sales/channel-sales.ts";
import { createChannelObserver } from "./watch/channel-observer.ts";
import type { ChannelObserver } from "./watch/observed-channel.ts";
import { type Watching, watchRound } from "./watch/watch-channels.ts";
import { createWatchRounds } from "./watch/watch-rounds.ts";

/** Channels of one network in one process. */
export interface NetworkChannels extends ChannelObserver {
  /** The escrow. In lower case. */
  readonly contract: Address;
  readonly deposits: ChannelDeposits;
  readonly refunds: NetworkRefunds;
  /** Looks at the chain now. */
  wake(): void;
  /**
   * Claims what is unclaimed and worth its gas, of one channel or of all. A repetition claims
   * nothing that is on its way. It needs no lease: a claim that is sent twice is paid once.
   *
   * @returns the plan, whose transactions are on the disk
   */
  claim(asked: AskedClaim): Promise<ClaimPlan>;
  stop(): Promise<void>;
}

/** Channels of all networks in one process. */
export interface Channels {
  readonly sales: RunningChannelSales;
  of(network: Network): NetworkChannels | undefined;
  stop(): Promise<void>;
}

/** A voucher keeps the chain watched block by block for this long. */
const trafficMs = 60_000;

/**
 * Follows the channels of the networks. One process of a ledger watches a network's chain, and one
 * with a relayer claims, each under a lease. A process may die at any step.
 */
export function startChannels(options: {
  context: SettlementContext;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  settings: ChannelSettings;
  /** Gas of one caller of a hosted facilitator in an hour: its deposits are sent here, too. */
  callerGasPerHour: bigint | undefined;
  metrics: ChannelMetrics;
  stops: StopBoard;
}): Channels {
  const { context, settings, metrics, callerGasPerHour = defaultCallerGasPerHour } = options;
  const { ledger, clock, logger } = context;
  const networks = new Map(
    [...options.settlements].flatMap(([network, settlement]) => {
      if (!settings.networks.has(network)) return [];
      const place = { network, contract: settings.contract };
      const channels = { context, settlement, settings, metrics, place };
      const { depositLimits: limits } = settings;
      const bounds = { limits, minDeposit: minDepositWorthGas(settings), callerGasPerHour };
      const deposits = startDeposits(channels, bounds);
      return [[network, { ...startNetwork(channels), deposits }] as const];
    }),
  );
  const [signer] = settings.signers;
  if (signer === undefined) throw new TypeError("Channels have no authorizer");
  const sales = createChannelSales({
    ledger,
    networks: [...networks].map(([network, running]) => ({
      network,
      contract: settings.contract,
      receiverAuthorizer: signer.address,
      observer: running,
      deposits: running.deposits,
      refunds: running.refunds,
    })),
    recoverSigner: createSignerRecovery().recoverSigner,
    stops: options.stops,
    metrics,
    clock,
    logger,
    minLoss: settings.claimCost,
    faultPoint: async (point) => context.faultPoint(point),
  });
  return {
    sales,
    of: (network) => networks.get(network),
    async stop() {
      await sales.close();
      await Promise.all(
        [...networks.values()].flatMap((each) => [each.deposits.stop(), each.stop()]),
      );
    },
  };
}

function startNetwork(channels: ChannelsContext): Omit<NetworkChannels, "deposits"> {
  const followed = followChannels(channels);
  const refunds = startChannelRefunds(channels, { onSent: followed.wake });
  return {
    ...followed,
    refunds,
    async stop() {
      // At once: the last claims wait for no refund.
      await Promise.all([refunds.stop(), followed.stop()]);
    },
  };
}

function followChannels(channels: ChannelsContext): Omit<NetworkChannels, "deposits" | "refunds"> {
  const { context, settlement, settings, place } = channels;
  const { clock, logger, ledger, times } = context;
  const { network } = settlement;
  const delayMs = settings.withdrawDelay * 1_000;
  const idleMs = Math.min(longestLookMs, delayMs / 100);
  const auditMs = auditMsOf(settings);
  let watching: Watching | undefined;
  let busyUntil = 0;
  let isBusy = true;
  let isStopped = false;
  let foundAt: number | undefined;

  const claims = createClaimRounds(channels, () => polling.wake());
  const keeper = keepLease({
    leases: ledger.leases,
    name: `channels:watch:${place.network}`,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    logger,
    onChange(lease) {
      watching = lease && {
        lease,
        last: undefined,
        movedAt: undefined,
        auditedAt: Number.NEGATIVE_INFINITY,
        behindSince: undefined,
      };
      if (lease) polling.wake();
    },
  });
  const watches = createWatchRounds(clock, watch, { onLate: () => polling.wake() });
  const polling = startPollLoop(clock, async () => {
    const fast = Math.max(network.blocks.blockTimeMs(), network.pollMs);
    const isWatched = await watches.round();
    try {
      // Also where the watch fails: by what is known, and by looks at several endpoints.
      const isActive = await claims.round();
      isBusy = isActive || !isWatched;
    } catch (err) {
      claims.fail(err);
      isBusy = true;
      report(err);
    }
    const isStandby = watching === undefined && !claims.isClaiming();
    if (isStandby) return times.leaseMs;
    return isBusy || clock.now() < busyUntil ? fast : idleMs;
  });
  const unsubscribe = network.watcher.subscribe(
    (event) => {
      if ("head" in event && (isBusy || clock.now() < busyUntil)) polling.wake();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );

  function report(err: unknown): void {
    if (isStopped) return;
    logger.warn({ err, network: place.network }, "channels could not be followed; retrying");
  }

  async function watch(signal: AbortSignal): Promise<boolean> {
    try {
      // Before the first round of this process: only another one counts for its vouchers.
      foundAt ??= (await readWatch(ledger, place))?.seenAt ?? 0;
      const current = watching;
      if (current === undefined) return true;
      const outcome = await watchRound(channels, current, { auditMs, signal });
      if (outcome === "lease_lost") keeper.lost(current.lease);
      return true;
    } catch (err) {
      report(err);
      return false;
    }
  }

  const observer = createChannelObserver(channels, {
    foundAt: () => foundAt,
    movedAt: () => watching?.movedAt,
    onVoucher() {
      const wasQuiet = !isBusy && clock.now() >= busyUntil;
      busyUntil = clock.now() + trafficMs;
      if (wasQuiet) polling.wake();
    },
  });
  return {
    ...observer,
    contract: place.contract,
    wake: polling.wake,
    claim: claims.ask,
    async stop() {
      if (settings.claimAtCloseMs > 0) {
        await claimBeforeClose(channels, () => claims.ask({ only: undefined }));
      }
      isStopped = true;
      unsubscribe();
      await Promise.all([watches.stop(), polling.stop()]);
      await keeper.stop();
      await claims.stop();
    },
  };
}
