import { randomUUID } from "node:crypto";
import { claimDeliveries, concludeDeliveries } from "@coinslot/storage";
import {
  createHostResolver,
  createPoster,
  createPublicLookup,
  createSigner,
  startCourier,
  type WebhookConclusion,
} from "@coinslot/webhooks";
import type { WebhookEndpoint } from "../configuration/webhook-options.ts";
import type { SettlementContext } from "../settle/context.ts";

/** Deadline of a POST, its answer included. */
const timeoutMs = 15_000;
/** Time after which another process may take an event up. */
export const claimMs = 60_000;

/** Deliveries to one receiver. */
export interface Delivering {
  stop(options: { graceMs: number }): Promise<void>;
}

/** Delivers what the ledger's outbox has for a receiver, beside other processes that do. */
export function startDelivering(
  context: Pick<SettlementContext, "ledger" | "metrics" | "clock" | "now" | "logger"> &
    Partial<Pick<SettlementContext, "times">>,
  { id: endpoint, url, secrets, allowPrivate }: WebhookEndpoint,
): Delivering {
  const { ledger, metrics, clock, now, logger, times } = context;
  const stopping = new AbortController();
  const claim = randomUUID();
  const resolve = createHostResolver({ timeoutMs });
  const lookup = allowPrivate ? undefined : createPublicLookup(resolve);
  let hasFailed = false;

  function count(conclusion: WebhookConclusion): void {
    const { outcome } = conclusion;
    if (outcome === "released") return;
    metrics.webhooks.inc({ endpoint, outcome });
    const fields = { endpoint, host: url.host };
    if (outcome === "dead") {
      const { error } = conclusion;
      logger.error({ ...fields, error }, "a webhook is dead: every attempt has failed");
    } else if (outcome === "failed" && !hasFailed) {
      logger.warn({ ...fields, error: conclusion.error }, "a webhook has failed; retrying");
    }
    // One line for an outage, however many events fail in it.
    hasFailed = outcome !== "delivered";
  }

  const courier = startCourier({
    queue: {
      claim: (limit) => claimDeliveries(ledger, { endpoint, claim, claimMs, limit }),
      conclude: (conclusions) => concludeDeliveries(ledger, { endpoint, claim }, conclusions),
    },
    target: {
      url,
      sign: createSigner(secrets),
      post: createPoster({ timeoutMs, lookup, signal: stopping.signal }),
    },
    pollMs: times?.sweepMs,
    freshMs: claimMs - 2 * timeoutMs,
    clock,
    now,
    onConcluded: count,
    onError: (err) => logger.warn({ err, endpoint }, "the outbox failed; retrying"),
  });
  return {
    async stop(options) {
      await courier.stop(options);
      stopping.abort();
    },
  };
}
