import { randomUUID } from "node:crypto";
import {
  authorizationKey,
  FacilitatorError,
  type LookUp,
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
  /** All kept answers together, in bytes. The oldest are forgotten first. Default 32 MiB. */
  maxAnswerBytes?: number | undefined;
  /** How often a payer may let a handler run without paying for it, in a minute. Default 20. */
  maxReleasesPerMinute?: number | undefined;
  /** Unix milliseconds. */
  now?: (() => number) | undefined;
}

/**
 * What is remembered of a payment.
 *
 * ```
 * (none) ── reserve ──► reserved ── beginSettlement ──► settling ── endSettlement ──► settled ── deliver ──► delivered
 *    ▲                     │                               │
 *    └──── release ────────┴─── endSettlement (refused) ───┘
 * ```
 */
interface Entry {
  state: "reserved" | "settling" | "settled" | "delivered";
  fingerprint: string;
  keyHash: string | undefined;
  /** Of the request that runs now; `undefined` between two attempts. */
  token: string | undefined;
  validBefore: bigint;
  /** The same for every settlement of this payment. */
  idempotencyKey: string;
  settlement: SettleResponse | undefined;
  answer: SealedAnswer | undefined;
}

/**
 * Keeps reservations in this process, for a facilitator that keeps none. They end with the process;
 * sellers with several processes give the middleware a store that these share.
 *
 * It holds no promises against balances: a payer who promises more than it has is found out when
 * settling, and gets nothing. When it is full of payments that may still be needed it throws, and
 * nobody is served.
 */
export function createReservationStore(options: ReservationStoreOptions = {}): ReservationStore {
  const { maxPayments = 100_000, maxAnswerBytes = 32 * 2 ** 20, now = Date.now } = options;
  const releases = createReleaseLimit({ perMinute: options.maxReleasesPerMinute ?? 20, now });
  const entries = new Map<string, Entry>();
  /** Which payment a payer's key belongs to. */
  const keyOwners = new Map<string, string>();
  let answerBytes = 0;

  function standing(request: ReservationRequest): LookUp {
    const key = authorizationKey(request.id);
    const entry = entries.get(key);
    const owner = request.keyHash && keyOwners.get(ownerKey(request));
    if (owner && owner !== key) return { state: "key_conflict" };
    if (entry === undefined) return { state: "free" };
    const isSameKey = entry.keyHash !== undefined && entry.keyHash === request.keyHash;
    const isSameRequest = entry.fingerprint === request.fingerprint;
    if (isSameKey && !isSameRequest) return { state: "key_conflict" };
    if (entry.state === "delivered" && entry.settlement !== undefined) {
      const { settlement, answer } = entry;
      return { state: "delivered", settlement, ...(isSameKey ? { answer } : {}) };
    }
    if (entry.token !== undefined || !isSameRequest) return { state: "in_use" };
    // A payload is public once it was broadcast: who began with a key goes on with it.
    return entry.keyHash === request.keyHash ? { state: "resumable" } : { state: "in_use" };
  }

  function held(reservation: Reservation): Entry | undefined {
    const entry = entries.get(authorizationKey(reservation.id));
    return entry?.token === reservation.token ? entry : undefined;
  }

  function forget(key: string, entry: Entry, payer: string): void {
    entries.delete(key);
    answerBytes -= entry.answer?.sealed.length ?? 0;
    if (entry.keyHash) keyOwners.delete(ownerKey({ keyHash: entry.keyHash, id: { payer } }));
  }

  function makeRoom(): void {
    if (entries.size < maxPayments) return;
    const seconds = BigInt(Math.floor(now() / 1000));
    for (const [key, entry] of entries) {
      // Nobody can execute it any more, so that nobody can be served for it either.
      const isOver = entry.token === undefined && entry.validBefore <= seconds;
      if (!isOver && entry.state !== "delivered") continue;
      forget(key, entry, payerOf(key));
      return;
    }
    throw new FacilitatorError("Too many payments are under way", { kind: "unavailable" });
  }

  function keepAnswer(entry: Entry, answer: SealedAnswer): void {
    answerBytes += answer.sealed.length - (entry.answer?.sealed.length ?? 0);
    entry.answer = answer;
    for (const other of entries.values()) {
      if (answerBytes <= maxAnswerBytes) return;
      if (other.state !== "delivered" || other.answer === undefined) continue;
      answerBytes -= other.answer.sealed.length;
      other.answer = undefined;
    }
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
        return { state: "resumed", reservation, answer: entry?.answer };
      }
      if (found.state !== "free") return found;
      if (releases.isExceeded(request.id.payer)) {
        const message = "This payer has let too many requests run without paying for them";
        return { state: "refused", reason: "unexpected_verify_error", message };
      }
      makeRoom();
      entries.set(key, {
        state: "reserved",
        fingerprint: request.fingerprint,
        keyHash: request.keyHash,
        token,
        validBefore: request.validBefore,
        idempotencyKey: randomUUID(),
        settlement: undefined,
        answer: undefined,
      });
      if (request.keyHash) keyOwners.set(ownerKey(request), key);
      return { state: "reserved", reservation };
    },

    async release(reservation, cause) {
      const entry = held(reservation);
      if (entry === undefined) return;
      entry.token = undefined;
      if (entry.state !== "reserved") return;
      forget(authorizationKey(reservation.id), entry, reservation.id.payer);
      if (cause !== "waived") releases.count(reservation.id.payer);
    },

    async deliver(reservation) {
      const entry = held(reservation);
      if (entry?.state !== "settled") return;
      entry.state = "delivered";
      entry.token = undefined;
    },

    async beginSettlement(reservation, answer) {
      const entry = held(reservation);
      if (entry === undefined) {
        throw new FacilitatorError("The reservation is not held", { kind: "unavailable" });
      }
      if (entry.settlement !== undefined) return { state: "settled", settlement: entry.settlement };
      if (answer !== undefined) keepAnswer(entry, answer);
      const state = entry.state === "reserved" ? "begun" : "repeated";
      entry.state = "settling";
      return { state, idempotencyKey: entry.idempotencyKey };
    },

    async endSettlement(reservation, settlement) {
      const entry = held(reservation);
      if (entry === undefined) return;
      if (settlement.success) {
        entry.state = "settled";
        entry.settlement = settlement;
      } else {
        forget(authorizationKey(reservation.id), entry, reservation.id.payer);
        releases.count(reservation.id.payer);
      }
    },
  };
}

function ownerKey(request: { keyHash?: string | undefined; id: { payer: string } }): string {
  return `${request.id.payer}/${request.keyHash}`;
}

/** The payer in an `authorizationKey`. */
function payerOf(key: string): string {
  return key.split("/")[2] ?? "";
}
