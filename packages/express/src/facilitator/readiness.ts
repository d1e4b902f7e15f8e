import {
  type ChannelSales,
  ConfigurationError,
  channelScheme,
  FacilitatorError,
  type ReservingFacilitator,
  type Supported,
} from "@coinslot/protocol";
import { type MakeOffer, prepareOffer } from "../offer/offer.ts";
import { type ServedVersions, servedVersions } from "../offer/served-versions.ts";
import type { Route } from "../routes/read-routes.ts";
import type { Settings } from "../settings.ts";
import {
  createPaymentRequiredAnswers,
  type WritePaymentRequired,
} from "../wires/payment-required-answer.ts";
import { createWires } from "../wires/registry.ts";
import type { Wire } from "../wires/wire.ts";

/** A facilitator that passed its checks, and what routes are sold with. */
export interface Prepared {
  facilitator: ReservingFacilitator;
  versionsOf: ServedVersions;
  offers: ReadonlyMap<Route, MakeOffer>;
  wires: readonly Wire[];
  writeOffer: WritePaymentRequired;
}

/** Readiness of paid routes for sale. */
export interface Readiness {
  /** `undefined` until every check has passed. A call may start another attempt. */
  prepared(): Prepared | undefined;
  /** The facilitator, from before its checks; `undefined` until it is loaded. */
  facilitator(): ReservingFacilitator | undefined;
  /** Resolves when every check has passed. @throws the error of the first attempt. */
  ready(): Promise<void>;
}

const retryMs = 2_000;

/**
 * Prepares the routes: waits for the facilitator and reads its supported kinds. After a retryable
 * error, a request starts another attempt, at most every two seconds. A configuration that cannot
 * work stays failed until the process restarts.
 */
export function createReadiness(options: {
  load: () => Promise<ReservingFacilitator>;
  routes: readonly Route[];
  settings: Settings;
}): Readiness {
  const { load, routes, settings } = options;
  const { onError, now } = settings;
  let prepared: Prepared | undefined;
  let facilitator: ReservingFacilitator | undefined;
  let retryAt = Number.POSITIVE_INFINITY;
  const first = attempt();
  // No unhandled rejection where the application never calls `ready()`.
  first.catch(() => undefined);

  async function attempt(): Promise<void> {
    retryAt = Number.POSITIVE_INFINITY;
    try {
      facilitator = await load();
      await facilitator.ready();
      prepared = await prepare(facilitator, await facilitator.getSupported());
    } catch (error) {
      const isPassing = error instanceof FacilitatorError && error.isRetryable;
      if (isPassing) retryAt = now() + retryMs;
      onError(error);
      throw error;
    }
  }

  async function prepare(
    facilitator: ReservingFacilitator,
    supported: Supported,
  ): Promise<Prepared> {
    const problems = [
      ...unservedNetworks(routes, supported),
      ...unservedChannels(routes, facilitator),
    ];
    if (problems.length > 0) throw new ConfigurationError("The paid routes", problems);
    const versionsOf = servedVersions(supported);
    const mpp = settings.mpp.mode;
    const offers = routes.map(
      (route) =>
        [route, prepareOffer({ route, versionsOf, mpp, channels: facilitator.channels })] as const,
    );
    const wires = await createWires({ settings, facilitator, routes });
    const writeOffer = createPaymentRequiredAnswers(wires);
    return { facilitator, versionsOf, offers: new Map(offers), wires, writeOffer };
  }

  return {
    prepared() {
      if (prepared === undefined && now() >= retryAt) attempt().catch(() => undefined);
      return prepared;
    },
    facilitator: () => facilitator,
    ready: () => first,
  };
}

/** Networks of the routes that the facilitator does not serve. */
export function unservedNetworks(routes: readonly Route[], supported: Supported): string[] {
  const versionsOf = servedVersions(supported);
  return routes.flatMap(({ key, accepts }) =>
    accepts.flatMap(({ network, channel }) => {
      const isServed = channel !== undefined || versionsOf(network).size > 0;
      return isServed ? [] : [`"${key}": the facilitator does not serve ${network}`];
    }),
  );
}

/** Routes that sell by payment channels which the facilitator does not serve. */
export function unservedChannels(
  routes: readonly Route[],
  { channels }: { channels?: Pick<ChannelSales, "authorizerOf"> | undefined },
): string[] {
  return routes.flatMap(({ key, accepts }) =>
    accepts.flatMap(({ network, channel }) =>
      channel === undefined || channels?.authorizerOf(network) !== undefined
        ? []
        : [
            `"${key}": the facilitator serves no payment channels on ${network}, so "${channelScheme}" cannot be sold`,
          ],
    ),
  );
}
