import { randomUUID } from "node:crypto";
import {
  authorizationKey,
  type BegunSettlement,
  ConfigurationError,
  FacilitatorError,
  maxHandlerRuns,
  type ReleaseCause,
  type Reservation,
  type ReservationStore,
  type Reserved,
  type SealedAnswer,
  type SettleResponse,
} from "@coinslot/protocol";
import { createReleaseLimit } from "./release-limit.ts";
import {
  availabilityFor,
  type Entry,
  findReserved,
  giveUpEntry,
  keepAnswer,
  makeRoom,
  moveEntry,
  ownerKey,
  type StoreContext,
} from "./store-entries.ts";

/** Bounds of the store, and its clock. */
export interface ReservationStoreOptions {
  /** Payments that are remembered at once. Default 100,000. */
  maxPayments?: number | undefined;
  /**
   * All kept answers together, in bytes. A payer may have a quarter; beyond it, and beyond all, its
   * own oldest goes. Default 32 MiB.
   */
  maxAnswerBytes?: number | undefined;
  /**
   * A payer's unpaid handler runs in a minute. Default 20. A running handler counts until it is
   * paid for.
   */
  maxReleasesPerMinute?: number | undefined;
  /**
   * Or, if that is more, this share of the payer's paid runs of the last minute. Runs for the same
   * amount or more count. Default 0.5.
   */
  releasesPerPaid?: number | undefined;
  /** Unix milliseconds. */
  now?: (() => number) | undefined;
}

/**
 * Keeps reservations in this process, for a facilitator that keeps none. They end with the process;
 * sellers with several processes give the middleware a store that these share.
 *
 * It tracks no committed balances. A payer that overcommits its balance is found out when settling,
 * and gets nothing. When the store is full of payments that may still be needed it throws, and no
 * request is served.
 *
 * @throws ConfigurationError where a bound is no number: each comparison with NaN is false
 */
export function createReservationStore(options: ReservationStoreOptions = {}): ReservationStore {
  const { maxPayments = 100_000, maxAnswerBytes = 32 * 2 ** 20, now = Date.now } = options;
  const { maxReleasesPerMinute = 20, releasesPerPaid = 0.5 } = options;
  checkBounds({ maxPayments, maxAnswerBytes, maxReleasesPerMinute, releasesPerPaid });
  const freeRuns = createReleaseLimit({
    perMinute: maxReleasesPerMinute,
    shareOfPaid: releasesPerPaid,
    now,
  });
  const context: StoreContext = {
    maxPayments,
    maxAnswerBytes,
    now,
    freeRuns,
    entries: new Map(),
    keyOwners: new Map(),
    running: new Map(),
    answersOf: new Map(),
    answerBytes: 0,
  };
  return {
    lookUp: async (request) => availabilityFor(context, request),
    reserve: async (request) => reserve(context, request),
    release: async (reservation, cause, { hasRun = true } = {}) =>
      release(context, { reservation, cause, hasRun }),
    deliver: async (reservation) => deliver(context, reservation),
    beginSettlement: async (reservation, answer) => beginSettlement(context, reservation, answer),
    endSettlement: async (reservation, settlement) =>
      endSettlement(context, reservation, settlement),
  };
}

function checkBounds(bounds: Record<string, number>): void {
  const problems = Object.entries(bounds).flatMap(([name, bound]) =>
    Number.isFinite(bound) && bound >= 0 ? [] : [`${name} must be a number, not negative`],
  );
  if (problems.length > 0) throw new ConfigurationError("The reservation store", problems);
}

function reserve(
  context: StoreContext,
  request: Parameters<ReservationStore["reserve"]>[0],
): Reserved {
  const { entries, keyOwners, freeRuns, running } = context;
  const found = availabilityFor(context, request);
  const key = authorizationKey(request.id);
  const token = randomUUID();
  const reservation = { id: request.id, token };
  if (found.state === "resumable") {
    const entry = entries.get(key);
    if (entry !== undefined) entry.token = token;
    const isKeyed = entry?.keyHash !== undefined;
    const mayRun = (entry?.runs ?? 0) < maxHandlerRuns;
    return { state: "resumed", reservation, isKeyed, answer: entry?.answer, mayRun };
  }
  if (found.state !== "free") return found;
  const runs = entries.get(key)?.runs ?? 0;
  if (runs >= maxHandlerRuns) return { state: "used_up" };
  const limit = freeRuns.limitOf(request, running.get(request.id.payer) ?? 0);
  if (limit !== undefined) return { state: "payer_limited", ...limit };
  makeRoom(context);
  const entry: Entry = {
    id: request.id,
    state: "given_up",
    fingerprint: request.fingerprint,
    keyHash: request.keyHash,
    token,
    runs,
    value: request.value,
    validBefore: request.validBefore,
    idempotencyKey: randomUUID(),
    settlement: undefined,
    answer: undefined,
  };
  entries.delete(key);
  entries.set(key, entry);
  moveEntry(context, entry, "reserved");
  if (request.keyHash) keyOwners.set(ownerKey(request), key);
  return { state: "reserved", reservation };
}

function release(
  context: StoreContext,
  ended: { reservation: Reservation; cause: ReleaseCause; hasRun: boolean },
): void {
  const { reservation, cause, hasRun } = ended;
  const entry = findReserved(context, reservation);
  if (entry === undefined) return;
  entry.token = undefined;
  if (hasRun) entry.runs += 1;
  if (entry.state !== "reserved") return;
  giveUpEntry(context, entry);
  if (hasRun && cause !== "waived") context.freeRuns.countFree(reservation.id.payer);
}

function deliver(context: StoreContext, reservation: Reservation): void {
  const entry = findReserved(context, reservation);
  if (entry?.state !== "settled") return;
  moveEntry(context, entry, "delivered");
  entry.token = undefined;
}

function beginSettlement(
  context: StoreContext,
  reservation: Reservation,
  answer: SealedAnswer | undefined,
): BegunSettlement {
  const entry = findReserved(context, reservation);
  if (entry === undefined || entry.state === "given_up") {
    throw new FacilitatorError("The reservation is not held", { kind: "unavailable" });
  }
  if (entry.settlement !== undefined) return { state: "settled", settlement: entry.settlement };
  if (answer !== undefined) keepAnswer(context, entry, answer);
  const state = entry.state === "reserved" ? "begun" : "repeated";
  moveEntry(context, entry, "settling");
  return { state, idempotencyKey: entry.idempotencyKey };
}

function endSettlement(
  context: StoreContext,
  reservation: Reservation,
  settlement: SettleResponse,
): void {
  const entry = findReserved(context, reservation);
  if (entry === undefined) return;
  if (settlement.success) {
    if (entry.settlement === undefined) context.freeRuns.countPaid(entry);
    moveEntry(context, entry, "settled");
    entry.settlement = settlement;
  } else {
    // The token stays until its holder reports whether the handler has run.
    giveUpEntry(context, entry);
    context.freeRuns.countFree(reservation.id.payer);
  }
}
