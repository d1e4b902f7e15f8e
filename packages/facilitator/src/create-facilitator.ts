import { randomBytes } from "node:crypto";
import {
  type Caip2,
  caip2Of,
  FacilitatorError,
  type LookUp,
  type Reserved,
  type ReservingFacilitator,
  type SettleResponse,
} from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";
import type { Registry } from "prom-client";
import { readFacilitatorOptions } from "./configuration/facilitator-configuration.ts";
import type { FacilitatorOptions } from "./configuration/facilitator-options.ts";
import {
  readSettlementOptions,
  type SettlementOptions,
} from "./configuration/settlement-options.ts";
import { createHooks, type HookMethods } from "./hooks.ts";
import type { LedgerPayment } from "./ledger/payments/ledger-payment.ts";
import type { PaymentFilter, PaymentPage } from "./ledger/queries/list-payments.ts";
import type { PaymentStats } from "./ledger/queries/payment-stats.ts";
import { openChain } from "./open-chain.ts";
import { checkNetworks } from "./ready/check-networks.ts";
import { createMetrics } from "./settle/metrics.ts";
import { toReserved } from "./settle/reserved.ts";
import { settleResponseOf } from "./settle/settle-response.ts";
import type { SettlementEvent, SettlementListener } from "./settle/settlement-event.ts";
import { burntGas, outOfGasMoney } from "./settle/unavailable-errors.ts";
import { type Engine, startEngine } from "./start-engine.ts";
import { refuse } from "./verify/refuse.ts";
import { toVerifyResponse } from "./verify/verdict.ts";
import { createVerifier } from "./verify/verifier.ts";

/** A facilitator in this process. */
export interface CoinslotFacilitator
  extends ReservingFacilitator,
    HookMethods<CoinslotFacilitator> {
  /** As every facilitator, its network typed so that the reference's middleware takes it too. */
  settle(
    ...parameters: Parameters<ReservingFacilitator["settle"]>
  ): Promise<SettleResponse & { network: Caip2 }>;
  /** What the ledger knows of payments. */
  readonly payments: {
    /** The newest first, page by page. */
    list(filter?: PaymentFilter): Promise<PaymentPage>;
    /** By the id that the ledger gave it. */
    get(id: string): Promise<LedgerPayment | undefined>;
  };
  /** Counts and sums by network, asset and state. */
  stats(options?: { createdFrom?: number | undefined }): Promise<PaymentStats[]>;
  /** Figures for Prometheus: `await metrics.metrics()` is the text of a scrape. */
  readonly metrics: Registry;
  /** Calls the listener for everything that happens to payments from now on; returns what ends that. */
  onEvent(listener: SettlementListener): () => void;
  /** Ends in order: what was begun is stored, leases are given back. Harmless when repeated. */
  close(): Promise<void>;
}

/**
 * Creates a facilitator that verifies and settles payments in this process. It begins at once to
 * open its ledger and to check its chains; `ready()` says what came of it.
 *
 * @throws ConfigurationError with everything that is wrong in the options.
 */
export function createFacilitator(
  options: FacilitatorOptions & SettlementOptions,
): CoinslotFacilitator {
  const configuration = readFacilitatorOptions(options);
  const settings = readSettlementOptions(options);
  const { logger, clock, now } = configuration;
  const hooks = createHooks({ logger, hooks: configuration.hooks });
  const metrics = createMetrics();
  const listeners = new Set<SettlementListener>();
  const chains = configuration.networks.map((network) => openChain(network, { clock, now }));
  const verifier = createVerifier({
    acceptsPayersWithCode: settings.acceptsPayersWithCode,
    logger,
    now,
    networks: new Map(
      chains.map(({ configuration: { network, assets, blockTimeSeconds }, pool, simulator }) => [
        network,
        { rpc: pool, simulator, assets, blockTimeSeconds },
      ]),
    ),
  });
  const starting = start();
  // Told by `ready`, and by every method; nobody may ever ask.
  starting.catch(() => undefined);
  let closing: Promise<void> | undefined;

  async function start(): Promise<Engine> {
    const processId = randomBytes(12).toString("hex");
    const engine = startEngine({
      processId,
      ledgerUrl: configuration.ledger,
      chains,
      checks: checkNetworks({
        networks: chains,
        logger,
        clock,
        patienceMs: configuration.startTimeoutMs,
      }),
      settings,
      keepPaymentsMs: configuration.keepPaymentsMs,
      verifier,
      metrics,
      logger,
      now,
      clock,
      emit,
    });
    return engine;
  }

  function emit(event: SettlementEvent): void {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (err) {
        logger.error({ err, event: event.type }, "a listener threw: nothing is changed by it");
      }
    }
  }

  /** The engine, for methods that are of no use without it. */
  async function engine(): Promise<Engine> {
    try {
      return await starting;
    } catch (cause) {
      throw new FacilitatorError("The facilitator is not ready", { kind: "unavailable", cause });
    }
  }

  /** A fault of the database is a fault of ours, and its words are for the log. */
  async function guarded<Result>(work: (engine: Engine) => Promise<Result>): Promise<Result> {
    const running = await engine();
    try {
      return await work(running);
    } catch (cause) {
      if (!isDatabaseError(cause)) throw cause;
      logger.error({ err: cause }, "the ledger failed");
      throw new FacilitatorError("The ledger cannot be used at the moment", {
        kind: "unavailable",
        cause,
      });
    }
  }

  const facilitator: CoinslotFacilitator = {
    ...hooks.methods(() => facilitator),

    async ready() {
      await (await starting).ready();
    },

    async getSupported() {
      const networks = configuration.networks.map(({ network }) => network);
      return {
        kinds: networks.flatMap((network) =>
          [1, 2].map((x402Version) => ({ x402Version, scheme: "exact", network })),
        ),
        extensions: [],
        signers: Object.fromEntries(
          configuration.networks.map(({ network, relayers }) => [
            network,
            relayers.map(({ address }) => address),
          ]),
        ),
      };
    },

    async verifyLocally(paymentPayload, paymentRequirements, verifyOptions) {
      const verdict = await verifier.screen(paymentPayload, paymentRequirements, verifyOptions);
      const response = toVerifyResponse(verdict);
      if (verdict.isValid) return { ...response, isSignatureKnown: verdict.isSignedByPayer };
      if (verdict.invalidReason !== "invalid_exact_evm_signature") return response;
      // A payer may have had code when its payment began, which is resumed all the same.
      const isBegun = await guarded((running) =>
        running.isBegun(paymentPayload, paymentRequirements),
      );
      const { payer } = verdict;
      return isBegun && payer ? { isValid: true, payer, isSignatureKnown: () => true } : response;
    },

    async verify(paymentPayload, requirements, verifyOptions) {
      return hooks.aroundVerify({ paymentPayload, requirements }, async () => {
        const startedAt = performance.now();
        const verdict = await verifier.verify(paymentPayload, requirements, verifyOptions);
        metrics.verifySeconds(startedAt);
        if (!verdict.isValid) return toVerifyResponse(verdict);
        const { payment, balance, payer } = verdict;
        const running = await engine();
        if (verdict.payerHasCode) {
          const forMs = await guarded(({ ledger }) => ledger.findRefusal(payer));
          if (forMs !== undefined) {
            const message = burntGas(forMs);
            return toVerifyResponse(refuse("payer_not_accepted", { payer, message }));
          }
        }
        running.remember(payment, verdict);
        return { balance, ...toVerifyResponse(verdict) };
      });
    },

    async settle(paymentPayload, requirements, settleOptions = {}) {
      const response = await hooks.aroundSettle(
        { paymentPayload, requirements },
        () => guarded((running) => running.settle(paymentPayload, requirements, settleOptions)),
        () => guarded((running) => running.isBegun(paymentPayload, requirements)),
      );
      return { ...response, network: caip2Of(response.network) };
    },

    lookUp: (request) =>
      guarded(async ({ ledger }): Promise<LookUp> => {
        const { standing, payment, answer } = await ledger.lookUp(request);
        if (standing !== "delivered") return { state: standing };
        if (payment === undefined) return { state: "free" };
        return { state: "delivered", settlement: settleResponseOf(payment, undefined), answer };
      }),

    reserve: (request) => guarded((running) => reserve(running, request)),

    release: (reservation, cause, { hasRun = true } = {}) =>
      guarded(({ ledger }) =>
        ledger.release({
          token: reservation.token,
          payer: reservation.id.payer,
          hasRun,
          countsAgainstPayer:
            cause === "refused"
              ? "if_failed"
              : hasRun && (cause === "handler_failed" || cause === "disconnected"),
        }),
      ),

    deliver: (reservation) => guarded(({ ledger }) => ledger.deliver(reservation.token)),

    payments: {
      list: (filter = {}) => guarded(({ ledger }) => ledger.list(filter)),
      get: (id) => guarded(async ({ ledger }) => (await ledger.get([id]))[0]),
    },
    stats: (which) => guarded(({ ledger }) => ledger.stats(which)),
    metrics: metrics.registry,
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      closing ??= closeAll();
      return closing;
    },
  };

  async function reserve(
    running: Engine,
    request: Parameters<ReservingFacilitator["reserve"]>[0],
  ): Promise<Reserved> {
    const { ledger, canPay } = running;
    const { id } = request;
    if (!canPay(id.network)) {
      // What is under way already can be resumed: that takes no gas.
      const { standing } = await ledger.lookUp(request);
      if (standing === "free") throw outOfGasMoney(id.network);
    }
    const startedAt = performance.now();
    const result = await running.reserve({ gasAtRisk: running.gasAtRisk(id), ...request });
    metrics.reserveSeconds(startedAt);
    await settings.faultPoint("reserved");
    return toReserved(id, result);
  }

  async function closeAll(): Promise<void> {
    const running = await starting.catch(() => undefined);
    try {
      await running?.close();
    } finally {
      for (const { pool, watcher } of chains) {
        watcher.close();
        pool.close();
      }
    }
  }

  return facilitator;
}
