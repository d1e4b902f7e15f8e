import { sleep } from "@coinslot/chain";
import { createKeyedMutex } from "@coinslot/concurrency";
import type { Address, HostedChannels, Network } from "@coinslot/protocol";
import { createSignerRecovery } from "../../evm/recover-signer.ts";
import { forgetCalls } from "../../ledger/channels/caller-calls.ts";
import { forgetGas } from "../../ledger/channels/caller-gas.ts";
import { forgetDeposits } from "../../ledger/channels/move-deposit.ts";
import { createChannelDigests } from "../../schemes/batch-settlement/channel-digests.ts";
import type { ChannelMetrics } from "../../settle/channel-metrics.ts";
import type { SettlementContext } from "../../settle/context.ts";
import type { NetworkSettlement } from "../../settle/engine.ts";
import { startPollLoop } from "../../settle/pace/poll-loop.ts";
import type { StopBoard } from "../../stops/stop-board.ts";
import { defaultDepositLimits } from "../channel-settings.ts";
import type { EscrowContext } from "../channels-context.ts";
import { type ChannelDeposits, startDeposits } from "../deposits/channel-deposits.ts";
import { createLookLimit } from "../sales/look-limit.ts";
import type { Channels } from "../start-channels.ts";
import type { HostedContext, HostedNetwork } from "./hosted-context.ts";
import type { HostedChannelSettings } from "./hosted-settings.ts";
import { settleChannel } from "./settle-channel.ts";
import { verifyChannel } from "./verify-channel.ts";

/** Channels for callers, in one process. */
export interface RunningHostedChannels extends HostedChannels {
  stop(): Promise<void>;
}

const forgetEveryMs = 3_600_000;
const keptEndedMs = 30 * 86_400_000;

/** Starts to serve the escrow of the networks to callers. A process may die at any step. */
export function startHostedChannels(options: {
  context: SettlementContext;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  settings: HostedChannelSettings;
  /** The tokens of each network that are served. */
  assets: ReadonlyMap<Network, ReadonlySet<Address> | undefined>;
  metrics: ChannelMetrics;
  stops: StopBoard;
  /** Channels that this ledger sells by: their deposits are sent by the same loop. */
  channels: Channels | undefined;
}): RunningHostedChannels {
  const { context, settlements, settings, assets, metrics, stops, channels } = options;
  const { clock, ledger, logger } = context;
  const own: ChannelDeposits[] = [];
  const networks = new Map(
    [...settlements].flatMap(([network, settlement]) => {
      if (!settings.networks.has(network)) return [];
      const place = { network, contract: settings.contract };
      const escrow: EscrowContext = { context, settlement, metrics, place };
      const sold = channels?.of(network);
      const shared = sold?.contract === settings.contract ? sold.deposits : undefined;
      // A minimum is the seller's own to enforce: its gas is bounded by caller.
      const callerGasPerHour = settings.gasPerHour;
      const bounds = { limits: defaultDepositLimits, minDeposit: 0n, callerGasPerHour };
      const deposits = shared ?? startDeposits(escrow, bounds);
      if (shared === undefined) own.push(deposits);
      const digests = createChannelDigests(place);
      const hosted: HostedNetwork = { escrow, deposits, digests, assets: assets.get(network) };
      return [[network, hosted] as const];
    }),
  );
  const hosted: HostedContext = {
    settings,
    networks,
    recoverSigner: createSignerRecovery().recoverSigner,
    stops,
    trials: createLookLimit({ now: () => clock.now() }),
    turns: createKeyedMutex(),
    sent: new Map(),
    looks: new Map(),
    pause: (ms) => sleep(clock, ms),
  };
  const forgetting = startPollLoop(clock, async () => {
    try {
      for (const { escrow } of networks.values()) {
        const ended = { ...escrow.place, before: ledger.now() - keptEndedMs };
        await forgetCalls(ledger, ended);
        await forgetDeposits(ledger, ended);
        await forgetGas(ledger, ended);
      }
    } catch (err) {
      logger.warn({ err }, "old calls of callers could not be deleted; retrying");
    }
    return forgetEveryMs;
  });
  return {
    verify: (message, asker) => verifyChannel(hosted, message, asker),
    settle: (message, asker) => settleChannel(hosted, message, asker),
    async stop() {
      await forgetting.stop();
      await Promise.all(own.map((deposits) => deposits.stop()));
    },
  };
}
