import { randomUUID } from "node:crypto";
import { type Clock, sleep } from "@coinslot/chain";
import { type ChannelSales, FacilitatorError, type Network } from "@coinslot/protocol";
import type { RecoverSigner } from "../../evm/recover-signer.ts";
import {
  forgetChannelAnswers,
  measureChannelAnswers,
} from "../../ledger/channels/channel-answers.ts";
import type { ChannelRefund } from "../../ledger/channels/channel-refunds.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { type AnswerLimits, createAnswerQuotas } from "../../ledger/payments/answer-quotas.ts";
import type { Logger } from "../../logger.ts";
import { createChannelDigests } from "../../schemes/batch-settlement/channel-digests.ts";
import { checkVoucher } from "../../schemes/batch-settlement/check-voucher.ts";
import { serveDeposit } from "../deposits/serve-deposit.ts";
import { type OperatorsRefund, refundByOperator } from "../operators/refund-by-operator.ts";
import { serveRefund } from "../refunds/serve-refund.ts";
import { createChannelLanes } from "./channel-lanes.ts";
import { createChannelLeases } from "./channel-leases.ts";
import { createDeliveryMarks } from "./delivery-marks.ts";
import { createLookLimit } from "./look-limit.ts";
import { createOwingSigners } from "./owing-signers.ts";
import { createRunLimit } from "./run-limit.ts";
import type { ChannelNetwork, SalesContext } from "./sales-context.ts";
import { createSeenChannels } from "./seen-channels.ts";
import { serveVoucher } from "./serve-voucher.ts";

/** Sales by channels that run, until they are closed. */
export interface RunningChannelSales extends ChannelSales {
  /**
   * Gives back what was not charged on a channel, for the operator.
   *
   * @throws OperationRefusedError in words for the operator
   */
  refundFor(network: Network, asked: OperatorsRefund): Promise<ChannelRefund>;
  /** Writes the marks that are left, and then nothing more. */
  close(): Promise<void>;
}

export interface ChannelSalesOptions {
  ledger: LedgerContext;
  networks: readonly Omit<ChannelNetwork, "digests" | "quotas" | "owing">[];
  recoverSigner: RecoverSigner;
  stops: SalesContext["stops"];
  metrics: SalesContext["metrics"];
  clock: Clock;
  logger: Logger;
  /** Longest queue of a channel beside the request that runs. */
  maxWaiting?: number;
  /** Longest wait for a channel. */
  maxWaitMs?: number;
  /** Bounds of kept answers. */
  answerLimits?: AnswerLimits;
  /** The signer of a smaller loss buys on by its other channels. Default 1. */
  minLoss?: bigint;
  faultPoint?: SalesContext["faultPoint"];
}

const defaultAnswerLimits: AnswerLimits = {
  bytesPerPayer: 2 ** 20,
  bytesPerProcess: 64 * 2 ** 20,
  bytesInTable: 256 * 2 ** 20,
};
const forgetEveryMs = 60_000;

/** Creates the sales of one process. They read the chain by the watcher's observer alone. */
export function createChannelSales(options: ChannelSalesOptions): RunningChannelSales {
  const { ledger, recoverSigner, clock, logger, maxWaiting, maxWaitMs } = options;
  const { answerLimits = defaultAnswerLimits, minLoss = 1n } = options;
  const context: SalesContext = {
    ledger,
    networks: new Map(
      options.networks.map((each) => [
        each.network,
        {
          ...each,
          digests: createChannelDigests(each),
          quotas: createAnswerQuotas(answerLimits),
          owing: createOwingSigners({ ledger, place: each, minLoss, clock, logger }),
        },
      ]),
    ),
    recoverSigner,
    stops: options.stops,
    metrics: options.metrics,
    lanes: createChannelLanes({
      ...(maxWaiting === undefined ? {} : { maxWaiting }),
      ...(maxWaitMs === undefined ? {} : { maxWaitMs }),
    }),
    marks: createDeliveryMarks({ ledger, clock, logger }),
    leases: createChannelLeases({ ledger, clock, logger }),
    freeRuns: createRunLimit({ limit: ledger.releaseLimit, now: ledger.now }),
    looks: createLookLimit({ now: ledger.now }),
    seenChannels: createSeenChannels(),
    createId: randomUUID,
    pause: (ms) => sleep(clock, ms),
    faultPoint: options.faultPoint ?? (async () => undefined),
  };
  let cancel = clock.setTimer(forget, forgetEveryMs);
  let forgetting = Promise.resolve();
  let isClosed = false;

  function forget(): void {
    forgetting = dropAnswers(context)
      .catch((err: unknown) => logger.warn({ err }, "expired answers of channels wait"))
      .then(() => {
        if (!isClosed) cancel = clock.setTimer(forget, forgetEveryMs);
      });
  }

  function networkOf(network: Network): ChannelNetwork {
    const found = context.networks.get(network);
    if (found !== undefined) return found;
    throw new FacilitatorError(`No channels are served on ${network}`, { kind: "unavailable" });
  }

  return {
    authorizerOf: (network) => context.networks.get(network)?.receiverAuthorizer,
    minDepositOf: (network) => context.networks.get(network)?.deposits?.minDeposit,
    check(presented, { network, terms }) {
      const { digests } = networkOf(network);
      const [offered, ...former] = terms;
      const reason = checkVoucher(presented, { terms: offered, digests, recoverSigner });
      if (reason === undefined || !isOfTerms(reason)) return reason;
      const served = former.some(
        (each) => checkVoucher(presented, { terms: each, digests, recoverSigner }) === undefined,
      );
      return served ? undefined : reason;
    },
    admit: (request) => serveVoucher(context, networkOf(request.network), request),
    deposit: (request) => serveDeposit(context, networkOf(request.network), request),
    refund: (request) => serveRefund(context, networkOf(request.network), request),
    refundFor: (network, asked) => refundByOperator(context, networkOf(network), asked),
    async close() {
      isClosed = true;
      cancel();
      await forgetting;
      await context.leases.close();
      await context.marks.close();
    },
  };
}

/** Drops expired answers, and measures those of all processes where that is due. */
async function dropAnswers({ ledger, networks }: SalesContext): Promise<void> {
  const now = ledger.now();
  for (const { quotas } of networks.values()) quotas.dropExpired(now);
  await forgetChannelAnswers(ledger);
  for (const { quotas, network, contract } of networks.values()) {
    if (!quotas.isMeasureDue(now)) continue;
    quotas.measure(await measureChannelAnswers(ledger, { network, contract }), now);
  }
}

/** Reasons that other terms of the seller may not have. */
function isOfTerms(reason: string): boolean {
  return reason.endsWith("_mismatch") && !reason.endsWith("channel_id_mismatch");
}
