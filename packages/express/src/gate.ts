import {
  ConfigurationError,
  type Facilitator,
  type ReservationStore,
  type ReservingFacilitator,
  supportedSchema,
  type VisitReason,
} from "@coinslot/protocol";
import type { NextFunction, Request, Response } from "express";
import {
  type FacilitatorSource,
  facilitatorFromEnvironment,
} from "./facilitator/facilitator-from-environment.ts";
import { createReadiness, unservedChannels, unservedNetworks } from "./facilitator/readiness.ts";
import { isRecord } from "./is-record.ts";
import { processLoad } from "./load/load.ts";
import type { ServedVersions } from "./offer/served-versions.ts";
import type { PaymentMiddlewareOptions } from "./payment-middleware-options.ts";
import { countIn } from "./process-visits.ts";
import { createAnswerMemory } from "./replay/answer-memory.ts";
import { processBodies } from "./replay/body-pool.ts";
import { createReplayLimit } from "./replay/replay-limit.ts";
import type { Endings } from "./reservations/end-reservation.ts";
import { createReservationStore } from "./reservations/reservation-store.ts";
import { createTurns } from "./reservations/turns.ts";
import { createVerificationBudget } from "./reservations/verification-budget.ts";
import { withReservations } from "./reservations/with-reservations.ts";
import type { Route } from "./routes/read-routes.ts";
import type { Visit } from "./sale.ts";
import { readSettings, type Settings } from "./settings.ts";

/** The gate in front of paid routes: settings, a facilitator, and its readiness. */
export interface Gate {
  /** `undefined` while payments cannot be taken. */
  open(options: {
    route: Route;
    request: Request;
    response: Response;
    next: NextFunction;
  }): Visit | undefined;
  /** Counts a request that is refused before it is a visit. */
  count(route: Route, reason: VisitReason): void;
  settings: Settings;
  /** Versions that the facilitator serves; `undefined` while payments cannot be taken. */
  servedVersions(): ServedVersions | undefined;
  /** Receives faults that no caller sees. */
  onError: (error: unknown) => void;
  /** Resolves when payments can be taken. */
  ready(): Promise<void>;
  /** Closes the facilitator, if it was made from the environment. */
  close(): Promise<void>;
}

/**
 * Shared by every gate of this process: the bounds are on its memory, and on each payer's share.
 */
const shared = {
  answers: createAnswerMemory(),
  bodies: processBodies,
  replays: createReplayLimit(),
  turns: createTurns(),
  load: processLoad,
};

/**
 * State that the gates of one facilitator share where it keeps no reservations. A payment has one
 * reservation and a payer one limit, for any number of gates.
 */
const storeOf = perFacilitator((now) => createReservationStore({ now }));
const budgetOf = perFacilitator((now) => createVerificationBudget({ now }));

function perFacilitator<T>(make: (now: () => number) => T) {
  const made = new WeakMap<Facilitator, T>();
  return (facilitator: Facilitator, now: () => number): T => {
    const found = made.get(facilitator) ?? make(now);
    made.set(facilitator, found);
    return found;
  };
}

/**
 * Makes the gate of some routes, and begins to wait for its facilitator.
 *
 * @throws ConfigurationError with these problems and its own, if there are any.
 */
export function createGate(config: {
  routes: readonly Route[];
  facilitator: Facilitator | undefined;
  options: PaymentMiddlewareOptions;
  problems: readonly string[];
}): Gate {
  const { routes, facilitator, options } = config;
  const problems = [...config.problems];
  const settings = readSettings(options, {
    environment: facilitator === undefined ? process.env : {},
    tell: (problem) => problems.push(problem),
  });
  const { now } = settings;
  const source = sourceOf({
    routes,
    facilitator,
    reservations: options.reservations,
    now,
    problems,
  });
  if (problems.length > 0) throw new ConfigurationError("The payment middleware", problems);

  const { onError } = settings;
  const endings: Endings = new Map();
  const readiness = createReadiness({ load: source.load, routes, settings });
  return {
    open({ route, request, response, next }) {
      const prepared = readiness.prepared();
      const makeOffer = prepared?.offers.get(route);
      if (prepared === undefined || makeOffer === undefined) return undefined;
      const { facilitator, wires, writeOffer } = prepared;
      const ours = {
        settings,
        facilitator,
        endings,
        ...shared,
        route,
        wires,
        makeOffer,
        writeOffer,
      };
      return { request, response, next, ...ours };
    },
    count({ key }, reason) {
      const loaded = readiness.facilitator();
      if (loaded !== undefined) countIn(loaded, { route: key, reason });
    },
    settings,
    servedVersions: () => readiness.prepared()?.versionsOf,
    onError,
    ready: readiness.ready,
    close: source.close,
  };
}

function sourceOf(config: {
  routes: readonly Route[];
  facilitator: Facilitator | undefined;
  reservations: ReservationStore | undefined;
  now: () => number;
  problems: string[];
}): FacilitatorSource {
  const { routes, facilitator, now, problems } = config;
  if (facilitator === undefined) {
    return facilitatorFromEnvironment(process.env, (problem) => problems.push(problem));
  }
  if (!isFacilitator(facilitator)) {
    problems.push("the facilitator must have verify, settle and getSupported");
    return {
      load: () => Promise.reject(new Error("No facilitator")),
      close: async () => undefined,
    };
  }
  problems.push(...problemsKnownAtOnce(routes, facilitator));
  const { reservations = storeOf(facilitator, now) } = config;
  const reserving = isReserving(facilitator)
    ? facilitator
    : withReservations(facilitator, reservations, { now, budget: budgetOf(facilitator, now) });
  return { load: async () => reserving, close: async () => undefined };
}

/**
 * Problems that a facilitator shows at once, without a network request. The gate waits for any
 * other one.
 */
function problemsKnownAtOnce(routes: readonly Route[], facilitator: Facilitator): string[] {
  if (isReserving(facilitator)) return unservedChannels(routes, facilitator);
  const promises = routes.filter(({ refund }) => refund !== undefined);
  const broken = promises.map(
    ({ key }) =>
      `"${key}": refund needs a facilitator in this process; this one keeps no payment to give back`,
  );
  const unsold = [...broken, ...unservedChannels(routes, {})];
  const supported = facilitator.getSupported();
  if (supported instanceof Promise) {
    supported.catch(() => undefined);
    return unsold;
  }
  const read = supportedSchema.safeParse(supported);
  return read.success ? [...unsold, ...unservedNetworks(routes, read.data)] : unsold;
}

/** Sellers in plain JavaScript may pass any value, such as the options in its place. */
function isFacilitator(value: unknown): value is Facilitator {
  const methods = ["verify", "settle", "getSupported"];
  return isRecord(value) && methods.every((name) => typeof Reflect.get(value, name) === "function");
}

function isReserving(facilitator: Facilitator): facilitator is ReservingFacilitator {
  return "reserve" in facilitator && "verifyLocally" in facilitator;
}
