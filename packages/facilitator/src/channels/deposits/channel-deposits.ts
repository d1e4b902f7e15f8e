import { createKeyedSingleFlight } from "@coinslot/concurrency";
import {
  type ChannelConfig,
  type ChannelRefusalReason,
  type Hex,
  type PresentedVoucher,
  settleTimeoutMsFor,
} from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import type { DepositKey } from "../../ledger/channels/channel-deposits.ts";
import {
  type DepositLimits,
  type QueueOutcome,
  queueDeposit,
} from "../../ledger/channels/queue-deposit.ts";
import type { CheckedDeposit } from "../../schemes/batch-settlement/check-deposit.ts";
import { startPollLoop } from "../../settle/pace/poll-loop.ts";
import type { EscrowContext } from "../channels-context.ts";
import { mirrorChannels } from "../watch/mirror-channels.ts";
import { hasCode, isNonceUsed, passesTrial, readBalance } from "./deposit-evidence.ts";
import { depositGasLimit } from "./deposit-gas.ts";
import { type DepositPages, followDeposits } from "./send-deposits.ts";

/** Deposits on one network, in one process. */
export interface ChannelDeposits {
  /** The smallest deposit that is worth its gas, in the token's smallest unit. */
  readonly minDeposit: bigint;
  /**
   * Tries a deposit as its transaction would make it, and queues it on the disk. Its voucher and
   * its terms were checked. `used`: its authorization was executed or cancelled before. A deposit
   * for a caller of a hosted facilitator, by its name, takes its gas with the same commit.
   *
   * @throws RpcError, ZodError, DatabaseError
   */
  queue(
    presented: PresentedVoucher,
    deposit: CheckedDeposit,
    caller?: string,
  ): Promise<QueuedDeposit>;
  /**
   * Tries a deposit in the same way, and queues nothing. `undefined`: it would be executed.
   *
   * @throws RpcError, ZodError
   */
  test(config: ChannelConfig, deposit: CheckedDeposit): Promise<RefusedDeposit | undefined>;
  /**
   * Reads a channel at the head, and writes its mirror, unless the chain cannot be read.
   *
   * @throws DatabaseError
   */
  refresh(channelId: Hex): Promise<void>;
  /** Pause between two looks at a deposit's row. */
  pollMs(): number;
  /** Longest wait of a request for a deposit of this amount. */
  timeoutMs(amount: bigint): number;
  /** Monotonic milliseconds. */
  now(): number;
  stop(): Promise<void>;
}

/** `used`: its authorization was executed or cancelled before. */
type RefusedDeposit = { outcome: "used" } | { outcome: "refused"; reason: ChannelRefusalReason };

export type QueuedDeposit = QueueOutcome | RefusedDeposit;

const notifications = "coinslot_deposits";
const minPollMs = 100;

/** Bounds of the deposits of a network. */
interface DepositBounds {
  limits: DepositLimits;
  /** In the token's smallest unit. */
  minDeposit: bigint;
  /** Gas of one caller of a hosted facilitator in an hour. */
  callerGasPerHour: bigint;
}

/** Starts to send and follow the deposits of a network. */
export function startDeposits(
  channels: EscrowContext,
  { limits, minDeposit, callerGasPerHour }: DepositBounds,
): ChannelDeposits {
  const { context, settlement, place } = channels;
  const { ledger, clock, logger, times } = context;
  const { network } = settlement;
  const pages: DepositPages = { pending: undefined, executed: undefined };
  let isStopped = false;
  const pollMs = () => Math.max(minPollMs, Math.min(network.pollMs, network.blocks.blockTimeMs()));
  const polling = startPollLoop(clock, async () => {
    try {
      const found = await followDeposits(channels, { callerGasPerHour, pages });
      if (found === "pending") return pollMs();
      // A process that has died may have left some, and a message may be lost.
      return found === "settling" ? times.settlingMs : times.sweepMs;
    } catch (err) {
      if (!isStopped) {
        logger.warn({ err, network: place.network }, "deposits could not be followed; retrying");
      }
      return times.sweepMs;
    }
  });
  const unsubscribe = ledger
    .listen(notifications, (payload) => {
      if (payload === undefined || payload === place.network) polling.wake();
    })
    .catch((err: unknown) => {
      logger.warn({ err }, "no messages about deposits: they are polled");
    });

  // A buyer may ask as often as it likes: the node is asked by one request of a channel at a time.
  const reads = createKeyedSingleFlight(async (channelId: Hex) => {
    try {
      const head = await network.watcher.read(0);
      await mirrorChannels(channels, { wanted: [{ channelId }], head, lease: undefined });
    } catch (err) {
      if (isDatabaseError(err)) throw err;
      logger.warn({ err, network: place.network }, "a channel could not be read");
    }
  });

  return {
    minDeposit,
    async queue({ channelConfig: config, voucher: { channelId } }, deposit, caller) {
      const { nonce, data, amount, validBefore } = deposit;
      const key = { network: place.network, token: config.token, payer: config.payer, nonce };
      const head = await network.watcher.read(0);
      const tried = await tryDeposit(channels, config, deposit);
      if ("outcome" in tried) return tried;
      const { payerHasCode, balance } = tried;
      const outcome = await queueDeposit(ledger, {
        ...key,
        contract: place.contract,
        channelId,
        signer: config.payerAuthorizer,
        amount,
        validBefore,
        payerHasCode,
        data,
        sinceNumber: Number(head.number),
        gas: depositGasLimit(channels, { data, payerHasCode }),
        caller,
        callerGasPerHour,
        balance,
        limits,
      });
      if (outcome.outcome === "queued") {
        await context.faultPoint("deposit_queued");
        polling.wake();
        await ledger.notify(notifications, place.network).catch((err: unknown) => {
          logger.debug({ err }, "a message about a deposit was lost");
        });
      }
      return outcome;
    },
    async test(config, deposit) {
      const tried = await tryDeposit(channels, config, deposit);
      return "outcome" in tried ? tried : undefined;
    },
    refresh: reads.next,
    pollMs,
    timeoutMs: (value) =>
      settleTimeoutMsFor(network.blocks.blockTimeMs(), network.serveAfter({ value })),
    now: () => clock.now(),
    async stop() {
      isStopped = true;
      await (await unsubscribe)?.();
      await polling.stop();
    },
  };
}

/** Tries it as its transaction would execute it: from a relayer, with its gas. */
async function tryDeposit(
  channels: EscrowContext,
  config: ChannelConfig,
  { nonce, data, amount, isByKey }: CheckedDeposit,
): Promise<RefusedDeposit | { payerHasCode: boolean; balance: bigint }> {
  const { settlement, place } = channels;
  const payerHasCode = await hasCode(settlement.network.rpc, config);
  if (!isByKey && !payerHasCode) {
    return {
      outcome: "refused",
      reason: "invalid_batch_settlement_evm_receive_authorization_signature",
    };
  }
  const from = settlement.relayers[0]?.address;
  const gasLimit = depositGasLimit(channels, { data, payerHasCode });
  const call = { from, to: place.contract, data, gasLimit };
  const isGood = await passesTrial(settlement.network.rpc, call);
  const balance = await readBalance(settlement.network.rpc, config);
  if (isGood) return { payerHasCode, balance };
  const key = { network: place.network, token: config.token, payer: config.payer, nonce };
  return diagnose(channels, key, { amount, balance });
}

async function diagnose(
  { settlement: { network } }: EscrowContext,
  key: DepositKey,
  { amount, balance }: { amount: bigint; balance: bigint },
): Promise<RefusedDeposit> {
  if (await isNonceUsed(network.rpc, key)) return { outcome: "used" };
  const reason =
    balance < amount
      ? "invalid_batch_settlement_evm_insufficient_balance"
      : "invalid_batch_settlement_evm_deposit_simulation_failed";
  return { outcome: "refused", reason };
}
