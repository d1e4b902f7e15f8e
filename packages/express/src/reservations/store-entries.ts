import {
  type AuthorizationId,
  authorizationKey,
  FacilitatorError,
  type LookUp,
  type Reservation,
  type ReservationRequest,
  type SealedAnswer,
  type SettleResponse,
} from "@coinslot/protocol";
import type { ReleaseLimit } from "./release-limit.ts";

/**
 * A payment in the store.
 *
 * ```
 * (none)
 * given_up ── reserve ──► reserved ── beginSettlement ──► settling ── endSettlement ──► settled ── deliver ──► delivered
 *    ▲                       │                               │
 *    └────── release ────────┴──── endSettlement (refused) ──┘
 * ```
 *
 * `given_up` is remembered for the runs that it has had, as long as there is room.
 */
export interface Entry {
  readonly id: AuthorizationId;
  /** Set by `moveEntry` alone. */
  state: "given_up" | "reserved" | "settling" | "settled" | "delivered";
  readonly fingerprint: string;
  readonly keyHash: string | undefined;
  /** Of the current request; `undefined` between two attempts. */
  token: string | undefined;
  /** Runs of the handler for this payment. */
  runs: number;
  readonly value: bigint;
  readonly validBefore: bigint;
  /** The same for every settlement of this payment. */
  readonly idempotencyKey: string;
  settlement: SettleResponse | undefined;
  answer: SealedAnswer | undefined;
}

/** The store's records and bounds. */
export interface StoreContext {
  readonly maxPayments: number;
  /** Bytes of all kept answers together. */
  readonly maxAnswerBytes: number;
  readonly now: () => number;
  readonly freeRuns: ReleaseLimit;
  /** By `authorizationKey`, the oldest first. */
  readonly entries: Map<string, Entry>;
  /** The payment that a payer's key belongs to. */
  readonly keyOwners: Map<string, string>;
  /** Unpaid handlers that run for each payer. */
  readonly running: Map<string, number>;
  /** The entries of each payer that keep an answer, the oldest first. */
  readonly answersOf: Map<string, { bytes: number; entries: Set<Entry> }>;
  answerBytes: number;
}

/** Share of one payer in the bytes of all kept answers. */
const shareOfOnePayer = 1 / 4;

/** Availability of an authorization for a request. Changes nothing. */
export function availabilityFor(
  { entries, keyOwners }: StoreContext,
  request: ReservationRequest,
): LookUp {
  const key = authorizationKey(request.id);
  const entry = entries.get(key);
  const owner = request.keyHash && keyOwners.get(ownerKey(request));
  if (owner && owner !== key) return { state: "key_conflict" };
  if (entry === undefined || entry.state === "given_up") return { state: "free" };
  const isSameKey = entry.keyHash !== undefined && entry.keyHash === request.keyHash;
  const isSameRequest = entry.fingerprint === request.fingerprint;
  if (isSameKey && !isSameRequest) return { state: "key_conflict" };
  if (entry.state === "delivered" && entry.settlement !== undefined) {
    const { settlement, answer } = entry;
    return { state: "delivered", settlement, ...(isSameKey ? { answer } : {}) };
  }
  if (entry.token !== undefined || !isSameRequest) return { state: "in_use" };
  // A payload is public once it was broadcast: a payment that began with a key needs it again.
  const mayResume = entry.keyHash === undefined || isSameKey;
  return { state: mayResume ? "resumable" : "in_use" };
}

/** The entry of a reservation; `undefined` once its token is not the current one. */
export function findReserved({ entries }: StoreContext, reservation: Reservation) {
  const entry = entries.get(authorizationKey(reservation.id));
  return entry?.token === reservation.token ? entry : undefined;
}

/** The only code that changes a state: running handlers are counted here. */
export function moveEntry({ running }: StoreContext, entry: Entry, state: Entry["state"]): void {
  const { payer } = entry.id;
  const change = Number(state === "reserved") - Number(entry.state === "reserved");
  const count = (running.get(payer) ?? 0) + change;
  if (count === 0) running.delete(payer);
  else running.set(payer, count);
  entry.state = state;
}

/** Drops its reservation, answer and key, but not the count of its runs. */
export function giveUpEntry(context: StoreContext, entry: Entry): void {
  moveEntry(context, entry, "given_up");
  dropAnswer(context, entry);
  if (entry.keyHash) context.keyOwners.delete(ownerKey(entry));
}

/**
 * Evicts a payment that can buy nothing any more, where the store is full.
 *
 * @throws FacilitatorError when every payment may still be needed.
 */
export function makeRoom(context: StoreContext): void {
  const { entries, maxPayments, now } = context;
  if (entries.size < maxPayments) return;
  const seconds = BigInt(Math.floor(now() / 1000));
  for (const [key, entry] of entries) {
    // An expired authorization cannot be executed, so that it can buy nothing either.
    const isOver = entry.token === undefined && entry.validBefore <= seconds;
    const isUsedUp = entry.state === "delivered" || entry.state === "given_up";
    if (!isOver && !isUsedUp) continue;
    if (entry.state !== "given_up") giveUpEntry(context, entry);
    entries.delete(key);
    return;
  }
  throw new FacilitatorError("Too many payments are in flight", { kind: "unavailable" });
}

/** Where there is no room, the payer's own oldest answers are evicted, never another's. */
export function keepAnswer(context: StoreContext, entry: Entry, answer: SealedAnswer): void {
  const { answersOf, maxAnswerBytes } = context;
  const { payer } = entry.id;
  const size = answer.sealed.length;
  dropAnswer(context, entry);
  const own = answersOf.get(payer) ?? { bytes: 0, entries: new Set<Entry>() };
  const isFull = () =>
    own.bytes + size > maxAnswerBytes * shareOfOnePayer ||
    context.answerBytes + size > maxAnswerBytes;
  for (const oldest of own.entries) {
    if (!isFull()) break;
    dropAnswer(context, oldest);
  }
  if (isFull()) return;
  entry.answer = answer;
  answersOf.set(payer, own);
  own.entries.add(entry);
  own.bytes += size;
  context.answerBytes += size;
}

function dropAnswer(context: StoreContext, entry: Entry): void {
  const { answersOf } = context;
  const own = answersOf.get(entry.id.payer);
  if (entry.answer === undefined || own === undefined) return;
  const size = entry.answer.sealed.length;
  entry.answer = undefined;
  context.answerBytes -= size;
  own.bytes -= size;
  own.entries.delete(entry);
  if (own.entries.size === 0) answersOf.delete(entry.id.payer);
}

/** Name of a payer's idempotency key: it counts in the payer's scope. */
export function ownerKey(request: { keyHash?: string | undefined; id: { payer: string } }): string {
  return `${request.id.payer}/${request.keyHash}`;
}
