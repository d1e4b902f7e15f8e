import { listEndpoints, registerEndpoints, releaseClaims } from "@coinslot/storage";
import { fingerprintOf, isReceiverId, shownUrl } from "@coinslot/webhooks";
import type { WebhookEndpoint } from "../configuration/webhook-options.ts";
import type { SettlementContext } from "../settle/context.ts";
import { type Delivering, startDelivering } from "./start-delivering.ts";
import { watchBacklog } from "./watch-backlog.ts";

/** Deliveries under way at the end of a process get this time. Later ones are repeated. */
const graceMs = 3_000;

/** The running webhooks of a process. */
export interface Webhooks {
  stop(): Promise<void>;
}

/**
 * Makes the configured receivers those of the ledger, and delivers their events. README.md beside
 * this file has the way of an event.
 *
 * @param endpoints `undefined`: this process neither decides which there are nor delivers
 */
export async function startWebhooks(
  context: Pick<SettlementContext, "ledger" | "metrics" | "clock" | "now" | "logger"> &
    Partial<Pick<SettlementContext, "times">>,
  endpoints: readonly WebhookEndpoint[] | undefined,
): Promise<Webhooks> {
  const { ledger, logger } = context;
  if (endpoints === undefined) {
    const registered = await listEndpoints(ledger);
    // No URLs: those of some receivers are secrets.
    const ids = registered.flatMap(({ id, isEnabled }) =>
      isEnabled && isReceiverId(id) ? id : [],
    );
    if (ids.length > 0) {
      logger.warn(
        { endpoints: ids },
        "the ledger has webhooks that this process does not deliver: name them, or none, in `webhooks`",
      );
    }
    return watchBacklog(context, []);
  }
  await registerEndpoints(
    ledger,
    endpoints.map(({ id, url, secrets, types }) => ({
      id,
      url: shownUrl(url.href),
      secrets: secrets.map(fingerprintOf),
      types,
    })),
  );
  if (ledger.dialect.engine === "sqlite") {
    // The holder of the file's lock is alone: nobody posts for a claim of before.
    for (const { id } of endpoints) await releaseClaims(ledger, id);
  }
  const running: Delivering[] = endpoints.map((endpoint) => startDelivering(context, endpoint));
  const backlog = watchBacklog(
    context,
    endpoints.map(({ id }) => id),
  );
  return {
    async stop() {
      await backlog.stop();
      await Promise.all(running.map(({ stop }) => stop({ graceMs })));
    },
  };
}
