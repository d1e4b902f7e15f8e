import { randomUUID } from "node:crypto";
import { claimDeliveries, concludeDeliveries } from "@coinslot/storage";
import {
  type Courier,
  createHostResolver,
  createPoster,
  createPublicLookup,
  createSigner,
  startCourier,
  type WebhookConclusion,
} from "@coinslot/webhooks";
import type { WebhooksContext } from "./start-webhooks.ts";
import type { IndexerReceiver } from "./webhook-options.ts";

/** Deadline of a POST, its answer included. */
const timeoutMs = 15_000;
/** Time after which another process may take an event up. */
export const claimMs = 60_000;

/** Delivers what the outbox has for a receiver, beside other processes that do. */
export function startDelivering(
  { outbox, clock, now, logger, onWebhook }: WebhooksContext,
  { id: endpoint, url, secrets, allowPrivate }: IndexerReceiver,
): Courier {
  const stopping = new AbortController();
  const claim = randomUUID();
  const lookup = allowPrivate ? undefined : createPublicLookup(createHostResolver({ timeoutMs }));
  let hasFailed = false;

  function report(conclusion: WebhookConclusion): void {
    const { outcome } = conclusion;
    if (outcome === "released") return;
    onWebhook({ endpoint, outcome });
    const fields = { endpoint, host: url.host };
    if (outcome === "dead") {
      const { error } = conclusion;
      logger.error({ ...fields, error }, "A webhook is dead: every attempt has failed");
    } else if (outcome === "failed" && !hasFailed) {
      logger.warn({ ...fields, error: conclusion.error }, "A webhook has failed; retrying");
    }
    // One line for an outage, however many events fail in it.
    hasFailed = outcome !== "delivered";
  }

  const courier = startCourier({
    queue: {
      claim: (limit) => claimDeliveries(outbox, { endpoint, claim, claimMs, limit }),
      conclude: (conclusions) => concludeDeliveries(outbox, { endpoint, claim }, conclusions),
    },
    target: {
      url,
      sign: createSigner(secrets),
      post: createPoster({ timeoutMs, lookup, signal: stopping.signal }),
    },
    freshMs: claimMs - 2 * timeoutMs,
    clock,
    now,
    onConcluded: report,
    onError: (error) => logger.warn({ error, endpoint }, "The outbox failed; retrying"),
  });
  return {
    wake: courier.wake,
    async stop(options) {
      await courier.stop(options);
      stopping.abort();
    },
  };
}
