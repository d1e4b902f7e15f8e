import { randomUUID } from "node:crypto";
import {
  type AuthorizationId,
  authorizationKey,
  FacilitatorError,
  type LookUp,
  maxHandlerRuns,
  type Reservation,
  type ReservationRequest,
  type ReservationStore,
  type Reserved,
  type SealedAnswer,
  type SettleResponse,
} from "@coinslot/protocol";
import { createReleaseLimit } from "./release-limit.ts";

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
   * Or, if that is more, this share of the payer's paid runs of the last minute, for the same
   * amount or more. Default 0.5.
   */
  releasesPerPaid?: number | undefined;
  /** Unix milliseconds. */
  now?: (() => number) | undefined;
}

/**
 * State of a payment in the store.
 *
 * ```
 * (none)
 * released ── reserve ──► reserved ── beginSettlement ──► settling ── endSettlement ──► settled ── deliver ──► delivered
 *    ▲                       │                               │
 *    └────── release ────────┴──── endSettlement (refused) ──┘
 * ```
 *
 * `released` is remembered for the runs that it has had, as long as there is room.
 */
interface Entry {
  id: AuthorizationId;
  state: "released" | "reserved" | "settling" | "settled" | "delivered";
  fingerprint: string;
  keyHash: string | undefined;
  /** Of the current request; `undefined` between two attempts. */
  token: string | undefined;
  /** Runs of the handler for this payment. */
  runs: number;
  value: bigint;
  validBefore: bigint;
  /** The same for every settlement of this payment. */
  idempotencyKey: string;
  settlement: SettleResponse | undefined;
  answer: SealedAnswer | undefined;
}

/** Of the bytes of all kept answers. */
const shareOfOnePayer = 1 / 4;

/**
 * Keeps reservations in this process, for a facilitator that keeps none. They end with the process;
 * sellers with several processes give the middleware a store that these share.
 *
 * It tracks no committed balances. A payer that overcommits its balance is found out when settling,
 * and gets nothing. When the store is full of payments that may still be needed it throws, and no
 * request is served.
 */
export function createReservationStore(options: ReservationStoreOptions = {}): ReservationStore {
  const { maxPayments = 100_000, maxAnswerBytes = 32 * 2 ** 20, now = Date.now } = options;
  const releases = createReleaseLimit({
    perMinute: options.maxReleasesPerMinute ?? 20,
    shareOfPaid: options.releasesPerPaid ?? 0.5,
    now,
  });
  const entries = new Map<string, Entry>();
  /** The payment that a payer's key belongs to. */
  const keyOwners = new Map<string, string>();
  /** Unpaid handlers that run for each payer. */
  const running = new Map<string, number>();
  /** The entries of each payer that keep an answer, the oldest first. */
  const answersOf = new Map<string, { bytes: number; entries: Set<Entry> }>();
  let answerBytes = 0;

  function standing(request: ReservationRequest): LookUp {
    const key = authorizationKey(request.id);
    const entry = entries.get(key);
    const owner = request.keyHash && keyOwners.get(ownerKey(request));
    if (owner && owner !== key) return { state: "key_conflict" };
    if (entry === undefined || entry.state === "released") return { state: "free" };
    const isSameKey = entry.keyHash !== undefined && entry.keyHash === request.keyHash;
    const isSameRequest = entry.fingerprint === request.fingerprint;
    if (isSameKey && !isSameRequest) return { state: "key_conflict" };
    if (entry.state === "delivered" && entry.settlement !== undefined) {
      const { settlement, answer } = entry;
      return { state: "delivered", settlement, ...(isSameKey ? { answer } : {}) };
    }
    if (entry.token !== undefined || !isSameRequest) return { state: "in_use" };
    // A payload is public once it was broadcast: a request that began with a key must bring it
    // again.
    return entry.keyHash === request.keyHash ? { state: "resumable" } : { state: "in_use" };
  }

  function held(reservation: Reservation): Entry | undefined {
    const entry = entries.get(authorizationKey(reservation.id));
    return entry?.token === reservation.token ? entry : undefined;
  }

  /** The only code that changes a state: running handlers are counted here. */
  function move(entry: Entry, state: Entry["state"]): void {
    const { payer } = entry.id;
    const change = Number(state === "reserved") - Number(entry.state === "reserved");
    const count = (running.get(payer) ?? 0) + change;
    if (count === 0) running.delete(payer);
    else running.set(payer, count);
    entry.state = state;
  }

  /** Drops its reservation, answer and key, but not the count of its runs. */
  function giveUp(entry: Entry): void {
    move(entry, "released");
    dropAnswer(entry);
    disown(entry);
  }

  function dropAnswer(entry: Entry): void {
    const own = answersOf.get(entry.id.payer);
    if (entry.answer === undefined || own === undefined) return;
    const size = entry.answer.sealed.length;
    entry.answer = undefined;
    answerBytes -= size;
    own.bytes -= size;
    own.entries.delete(entry);
    if (own.entries.size === 0) answersOf.delete(entry.id.payer);
  }

  function disown({ id, keyHash }: Entry): void {
    if (keyHash) keyOwners.delete(ownerKey({ keyHash, id }));
  }

  function makeRoom(): void {
    if (entries.size < maxPayments) return;
    const seconds = BigInt(Math.floor(now() / 1000));
    for (const [key, entry] of entries) {
      // An expired authorization cannot be executed, so that it can buy nothing either.
      const isOver = entry.token === undefined && entry.validBefore <= seconds;
      const isUsedUp = entry.state === "delivered" || entry.state === "released";
      if (!isOver && !isUsedUp) continue;
      if (entry.state !== "released") giveUp(entry);
      entries.delete(key);
      return;
    }
    throw new FacilitatorError("Too many payments are under way", { kind: "unavailable" });
  }

  /** Where there is no room, the payer's own oldest answers are evicted, never another's. */
  function keepAnswer(entry: Entry, answer: SealedAnswer): void {
    const { payer } = entry.id;
    const size = answer.sealed.length;
    dropAnswer(entry);
    const own = answersOf.get(payer) ?? { bytes: 0, entries: new Set<Entry>() };
    const isFull = () =>
      own.bytes + size > maxAnswerBytes * shareOfOnePayer || answerBytes + size > maxAnswerBytes;
    for (const oldest of own.entries) {
      if (!isFull()) break;
      dropAnswer(oldest);
    }
    if (isFull()) return;
    entry.answer = answer;
    answersOf.set(payer, own);
    own.entries.add(entry);
    own.bytes += size;
    answerBytes += size;
  }

  return {
    async lookUp(request) {
      return standing(request);
    },

    async reserve(request): Promise<Reserved> {
      const found = standing(request);
      const key = authorizationKey(request.id);
      const token = randomUUID();
      const reservation = { id: request.id, token };
      if (found.state === "resumable") {
        const entry = entries.get(key);
        if (entry !== undefined) entry.token = token;
        const mayRun = (entry?.runs ?? 0) < maxHandlerRuns;
        return { state: "resumed", reservation, answer: entry?.answer, mayRun };
      }
      if (found.state !== "free") return found;
      const runs = entries.get(key)?.runs ?? 0;
      if (runs >= maxHandlerRuns) return { state: "used_up" };
      const limit = releases.limitOf(request, running.get(request.id.payer) ?? 0);
      if (limit !== undefined) return { state: "payer_limited", ...limit };
      makeRoom();
      const entry: Entry = {
        id: request.id,
        state: "released",
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
      move(entry, "reserved");
      if (request.keyHash) keyOwners.set(ownerKey(request), key);
      return { state: "reserved", reservation };
    },

    async release(reservation, cause, { hasRun = true } = {}) {
      const entry = held(reservation);
      if (entry === undefined) return;
      entry.token = undefined;
      if (hasRun) entry.runs += 1;
      if (entry.state !== "reserved") return;
      giveUp(entry);
      if (hasRun && cause !== "waived") releases.countFree(reservation.id.payer);
    },

    async deliver(reservation) {
      const entry = held(reservation);
      if (entry?.state !== "settled") return;
      move(entry, "delivered");
      entry.token = undefined;
    },

    async beginSettlement(reservation, answer) {
      const entry = held(reservation);
      if (entry === undefined || entry.state === "released") {
        throw new FacilitatorError("The reservation is not held", { kind: "unavailable" });
      }
      if (entry.settlement !== undefined) return { state: "settled", settlement: entry.settlement };
      if (answer !== undefined) keepAnswer(entry, answer);
      const state = entry.state === "reserved" ? "begun" : "repeated";
      move(entry, "settling");
      return { state, idempotencyKey: entry.idempotencyKey };
    },

    async endSettlement(reservation, settlement) {
      const entry = held(reservation);
      if (entry === undefined) return;
      if (settlement.success) {
        if (entry.settlement === undefined) releases.countPaid(entry);
        move(entry, "settled");
        entry.settlement = settlement;
      } else {
        // The token stays until its holder reports whether the handler has run.
        giveUp(entry);
        releases.countFree(reservation.id.payer);
      }
    },
  };
}

function ownerKey(request: { keyHash?: string | undefined; id: { payer: string } }): string {
  return `${request.id.payer}/${request.keyHash}`;
}
