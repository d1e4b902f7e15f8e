import {
  type Caip2,
  caip2Of,
  type HostedChannels,
  type ReservingFacilitator,
  type SettleResponse,
} from "@coinslot/protocol";
import type { Registry } from "prom-client";
import type { FacilitatorOptions } from "./configuration/facilitator-options.ts";
import type { SettlementOptions } from "./configuration/settlement-options.ts";
import { channelsOf } from "./facilitator-channels.ts";
import {
  closeFacilitator,
  type FacilitatorContext,
  forBuyer,
  withEngine,
} from "./facilitator-context.ts";
import { hostedChannelsOf } from "./facilitator-hosted-channels.ts";
import { refundsOf } from "./facilitator-refunds.ts";
import { createHooks, type HookMethods } from "./hooks.ts";
import { keepSecret } from "./ledger/maintenance/keep-secret.ts";
import { isReservationHeld } from "./ledger/maintenance/reservation-held.ts";
import { deliverPayment } from "./ledger/payments/deliver-payments.ts";
import type { LedgerPayment } from "./ledger/payments/ledger-payment.ts";
import { releasePayment } from "./ledger/payments/release-payment.ts";
import {
  getPayment,
  listPayments,
  type PaymentFilter,
  type PaymentPage,
} from "./ledger/queries/list-payments.ts";
import {
  type PaymentStats,
  paymentStats,
  type StatsOptions,
} from "./ledger/queries/payment-stats.ts";
import { listSupported } from "./list-supported.ts";
import { openFacilitator } from "./open-facilitator.ts";
import { type Operator, operatorWithin } from "./operators/operator.ts";
import type { Refunds } from "./refunds/refund.ts";
import {
  countsAgainstPayer,
  isAbandoned,
  lookUpForGate,
  reserveForGate,
} from "./reserve-payment.ts";
import { isSettlementBegun, settlePayment } from "./settle/settle-payment.ts";
import type { SettlementListener } from "./settle/settlement-event.ts";
import { listSignerFaults, type RestingRelayer } from "./signer-faults.ts";
import { readStopChange, type Stop, type StopChange, type StopTarget } from "./stops/stop.ts";
import { verifyBeforeChain, verifyOnChain } from "./verify-payment.ts";

/** A facilitator in this process. */
export interface CoinslotFacilitator
  extends ReservingFacilitator,
    HookMethods<CoinslotFacilitator> {
  /** As every facilitator, its network typed so that the reference's middleware takes it too. */
  settle(
    ...parameters: Parameters<ReservingFacilitator["settle"]>
  ): Promise<SettleResponse & { network: Caip2 }>;
  countVisit: NonNullable<ReservingFacilitator["countVisit"]>;
  /** Channels of other sellers, for callers with a key. `facilitatorRouter` serves them. */
  readonly hostedChannels: HostedChannels | undefined;
  /**
   * Why new payments are refused at the moment, in words for an operator; empty while they are
   * taken. For a `/readyz` of your own.
   */
  obstacles(): readonly string[];
  /** The ledger's records of payments. */
  readonly payments: {
    /** The newest first, page by page. */
    list(filter?: PaymentFilter): Promise<PaymentPage>;
    /** By the id that the ledger gave it. */
    get(id: string): Promise<LedgerPayment | undefined>;
  };
  /** Counts and sums by network, asset and state, and by day and route if asked for. */
  stats(options?: StatsOptions): Promise<PaymentStats[]>;
  /** Relayers whose key is elsewhere and does not sign, while they rest. */
  signerFaults(): readonly RestingRelayer[];
  /** The stop switches: new payments that are refused, in all processes of the ledger. */
  readonly stops: {
    /** Sets a switch, or changes its reason. Payments under way go on. */
    set(target: StopTarget, options: { reason: string }): Promise<void>;
    /** New payments are taken again. */
    clear(target: StopTarget): Promise<void>;
    /** The switches that are set, as this process knows them. */
    list(): readonly Stop[];
  };
  /** Money given back to payers: from the float account, or by a signature made elsewhere. */
  readonly refunds: Refunds;
  /**
   * The operator's commands in this process, as its socket and its HTTP listener serve them. A
   * caller that has it may act.
   */
  readonly operator: Operator;
  /** Metrics for Prometheus: `await metrics.metrics()` is the text of a scrape. */
  readonly metrics: Registry;
  /**
   * Calls the listener for all later events of payments. Returns the function that unsubscribes it.
   */
  onEvent(listener: SettlementListener): () => void;
  /**
   * Ends in order: work that was begun is stored, leases are given back. Harmless when repeated.
   */
  close(): Promise<void>;
}

/**
 * Creates a facilitator that verifies and settles payments in this process. It begins at once to
 * open its ledger and to check its chains. `ready()` resolves or rejects with the result.
 *
 * @example
 * ```ts
 * const facilitator = createFacilitator({
 *   networks: [
 *     {
 *       network: "eip155:9745",
 *       rpcUrls: ["https://rpc.plasma.to"],
 *       relayer: { seedPhrase: process.env.FACILITATOR_SEED_PHRASE },
 *     },
 *   ],
 *   ledger: "sqlite:./coinslot.db",
 * });
 * await facilitator.ready();
 * ```
 *
 * @throws ConfigurationError with everything that is wrong in the options.
 */
export function createFacilitator(
  options: FacilitatorOptions & SettlementOptions,
): CoinslotFacilitator {
  const facilitator = openFacilitator(options);
  const { configuration, metrics, listeners } = facilitator;
  const hooks = createHooks({ logger: configuration.logger, hooks: configuration.hooks });
  let closing: Promise<void> | undefined;

  const methods: CoinslotFacilitator = {
    ...hooks.methods(() => methods),
    ready: async () => (await facilitator.engine.current()).ready(),
    obstacles: () => [facilitator.health.obstacle() ?? []].flat(),
    getSupported: async () => listSupported(configuration),
    verifyLocally: (...request) => verifyBeforeChain(facilitator, ...request),
    verify: (paymentPayload, requirements, verifyOptions) =>
      hooks.aroundVerify({ paymentPayload, requirements }, () =>
        verifyOnChain(facilitator, paymentPayload, requirements, verifyOptions),
      ),
    async settle(paymentPayload, requirements, settleOptions = {}) {
      const response = await hooks.aroundSettle(
        { paymentPayload, requirements },
        () =>
          forBuyer(facilitator, (engine) =>
            settlePayment(engine, paymentPayload, requirements, settleOptions),
          ),
        () =>
          withEngine(facilitator, (engine) =>
            isSettlementBegun(engine, paymentPayload, requirements),
          ),
      );
      return { ...response, network: caip2Of(response.network) };
    },
    lookUp: (request) => forBuyer(facilitator, (engine) => lookUpForGate(engine, request)),
    reserve: (request) =>
      forBuyer(facilitator, (engine) => reserveForGate(engine, facilitator, request)),
    release: ({ token, id }, cause, { hasRun = true } = {}) =>
      withEngine(facilitator, ({ context }) =>
        releasePayment(context.ledger, {
          token,
          payer: id.payer,
          hasRun,
          countsAgainstPayer: countsAgainstPayer(cause, hasRun),
          isAbandoned: isAbandoned(cause),
        }),
      ),
    isHeld: (reservation) =>
      withEngine(facilitator, ({ context }) => isReservationHeld(context.ledger, reservation)),
    challengeSecret: () =>
      withEngine(facilitator, ({ context }) => keepSecret(context.ledger, "challenges")),
    deliver: ({ token }) =>
      withEngine(facilitator, ({ context }) => deliverPayment(context.ledger, token)),
    countVisit: facilitator.visits.count,
    payments: {
      list: (filter = {}) =>
        withEngine(facilitator, ({ operatorReads }) =>
          operatorReads.run((reads) => listPayments(reads, filter)),
        ),
      get: (id) =>
        withEngine(facilitator, ({ operatorReads }) =>
          operatorReads.run((reads) => getPayment(reads, id)),
        ),
    },
    stats: (filter) =>
      withEngine(facilitator, ({ operatorReads }) =>
        operatorReads.run((reads) => paymentStats(reads, filter)),
      ),
    signerFaults: () => listSignerFaults(configuration),
    stops: {
      set: (target, { reason }) => changeStops(facilitator, { operation: "set", target, reason }),
      clear: (target) => changeStops(facilitator, { operation: "clear", target }),
      list: () => facilitator.stops.list(),
    },
    refunds: refundsOf(facilitator),
    channels: channelsOf(facilitator),
    hostedChannels: hostedChannelsOf(facilitator),
    operator: operatorWithin((work) =>
      withEngine(facilitator, ({ operatorParts }) => work(operatorParts)),
    ),
    metrics: metrics.registry,
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      closing ??= closeFacilitator(facilitator);
      return closing;
    },
  };
  return methods;
}

async function changeStops(facilitator: FacilitatorContext, change: StopChange): Promise<void> {
  const checked = readStopChange(change);
  await withEngine(facilitator, ({ stopFollower }) => stopFollower.change(checked));
}
