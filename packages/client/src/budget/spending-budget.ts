import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";
import { type ChainReader, settledHistorySeconds } from "../chain/chain-reader.ts";
import {
  type Booking,
  type BudgetState,
  bookedIn,
  bringUpToDate,
  hourOf,
  isOpen,
  lowerBooking,
  needsTrustedClock,
  openBooking,
  raiseBooking,
  releaseBooking,
  settleBooking,
  spendOfBooking,
} from "./budget-state.ts";
import type { BudgetStore } from "./budget-store.ts";
import { checkClock } from "./check-clock.ts";
import {
  type BudgetBucket,
  inBucket,
  type SpendableAsset,
  showInBucket,
} from "./spending-policy.ts";

/** A request for a booking. */
export interface BookingRequest {
  id: AuthorizationId;
  /** Unix seconds. */
  validBefore: number;
  asset: SpendableAsset;
  /** In the token's smallest unit. */
  amount: bigint;
  /** Host name, without port: a port is for a seller to choose. */
  host: string;
  /** Nonces of the bookings that this one replaces, if it is made. */
  insteadOf?: readonly string[] | undefined;
}

/**
 * Money that a seller may claim of a payment channel, and that is not booked as spent. Its booking
 * is one per channel, under the channel's id, and has no end.
 */
export type ExposureRequest = Omit<BookingRequest, "validBefore" | "insteadOf">;

/** The stored ceiling of a channel, in the token's smallest unit. */
interface OfChannel {
  ceiling: bigint;
}

/** A time for which a booking counts until it is ended: the year 9999. */
const noEnd = 253_370_764_800;

/** Either booked, now or before, or the limit that refuses it. */
export type Booked = { ok: true; isNew: boolean } | ({ ok: false } & ExceededLimit);

/** A limit in words, and whether it counts payments and not money. */
interface ExceededLimit {
  message: string;
  isByCount?: true;
}

/** Books spending before it is signed. */
export interface SpendingBudget {
  /**
   * Commits the amount if all limits allow it, once for each nonce. Of two concurrent calls for the
   * last cent, one gets it.
   *
   * @throws PaymentError when the budget cannot be read or kept
   * @throws PaymentError `clock_wrong` when it needs the time and the clock contradicts the chains.
   * Then nothing is booked.
   */
  book(request: BookingRequest): Promise<Booked>;
  /** Resolves to whether an amount is committed to this authorization. */
  holds(id: AuthorizationId): Promise<boolean>;
  /**
   * Commits the whole exposure of a channel, if the limits of host and day allow it. It replaces
   * the channel's earlier one, unless that is higher: another file of channels may know of more.
   * The limit for one payment is the caller's to check, by the price.
   *
   * @param request.ceiling the one that is stored before the raise
   * @throws PaymentError as `book`
   */
  bookExposure(request: ExposureRequest & OfChannel): Promise<Booked>;
  /**
   * Lowers the booking of a channel to an exposure. It never raises it, and needs no room.
   *
   * @param request.exposureAt the exposure where this ceiling may have been signed, too
   */
  lowerExposure(
    request: Pick<ExposureRequest, "id" | "asset"> & { exposureAt: (ceiling: bigint) => bigint },
  ): Promise<void>;
  /** Resolves to the booked exposures by channel. */
  exposures(): Promise<ReadonlyMap<string, Booking>>;
  /** Counts a part of the exposure of a channel as spent today. The rest stays booked. */
  spendExposure(part: ExposureRequest): Promise<void>;
  /** Marks the payment as made. Its booking counts until it is a day old. */
  settle(nonce: string): Promise<void>;
  /** Releases a payment that certainly was not made and never will be. */
  release(nonce: string): Promise<void>;
}

/** Expired authorizations per round of questions to the chain. */
const reclaimedAtOnce = 20;

/** Most payments without an outcome: the file of a budget stays far below its largest size. */
const maxOpen = { atHost: 5_000, inAll: 20_000 };

/** Holds bookings against limits, over a store that may be shared. */
export function createSpendingBudget(options: {
  store: BudgetStore;
  /** Unix milliseconds. */
  now: () => number;
  chains: Pick<ChainReader, "wasUsed" | "readTimes">;
  /** Place of the first look at expired bookings: short processes share a file. In [0, 1). */
  random?: () => number;
}): SpendingBudget {
  const { store, now, chains, random = Math.random } = options;
  /** Index of the expired booking at which the next round begins. */
  let nextExpired: number | undefined;

  /** @returns `undefined` when the clock has to be checked first */
  async function tryToBook(
    request: BookingRequest & Partial<OfChannel>,
    clock: { trustedAt?: number | undefined; isChecked: boolean },
  ): Promise<Booked | undefined> {
    const { id, validBefore, asset, amount, host, insteadOf = [], ceiling } = request;
    const isExposure = ceiling !== undefined;
    return store.update<Booked | undefined>((before) => {
      if (!isExposure && isOpen(before, id.nonce))
        return { state: before, result: { ok: true, isNew: false } };
      const at = now();
      if (!clock.isChecked && needsTrustedClock(before, at)) {
        return { state: before, result: undefined };
      }
      // Fail closed: without a trusted clock nothing is dropped, so all bookings count.
      const { trustedAt } = clock;
      const state = trustedAt === undefined ? before : bringUpToDate(before, trustedAt);
      const bookedAt = Math.max(at, state.bookedAt);
      const pot = asset.pot.name;
      const hour = hourOf(bookedAt);
      const wanted = { id, validBefore, hour, pot, host, amount: inBucket(asset, amount) };
      const booking = isExposure ? raiseBooking(state, { ceiling, ...wanted }) : wanted;
      const without = insteadOf.reduce(releaseBooking, state);
      const exceeded = isReplaced(state, booking, insteadOf)
        ? undefined
        : findExceededLimit(without, booking, asset.pot, isExposure);
      if (exceeded !== undefined) return { state, result: { ok: false, ...exceeded } };
      return {
        state: { ...openBooking(without, booking), bookedAt },
        result: { ok: true, isNew: true },
      };
    });
  }

  async function bookAtTrustedTime(request: BookingRequest & Partial<OfChannel>): Promise<Booked> {
    const booked = await tryToBook(request, { isChecked: false });
    if (booked !== undefined) return booked;
    // Outside the lock, since a chain may be slow.
    const trustedAt = await checkClock({ now, readTimes: chains.readTimes });
    const later = await tryToBook(request, { trustedAt, isChecked: true });
    return later ?? { ok: false, message: "the budget cannot read the time" };
  }

  // Refused and lost payments stay booked until they cannot be made any more. Their fate is read
  // when the room is needed, and outside the lock, since a chain may be slow.
  async function reclaim(pot: string | undefined): Promise<boolean> {
    const latest = Math.floor(now() / 1000) - settledHistorySeconds;
    const open = await store.update((state) => ({ state, result: state.open }));
    const expired = open.filter(
      (each) => (pot === undefined || each.pot === pot) && each.validBefore < latest,
    );
    // In turn: those that no node knows must not hide the others for ever.
    nextExpired ??= Math.floor(random() * expired.length);
    const from = nextExpired < expired.length ? nextExpired : 0;
    const inTurn = [...expired.slice(from), ...expired.slice(0, from)].slice(0, reclaimedAtOnce);
    const fates = await Promise.all(
      inTurn.map(async (booking) => {
        return { nonce: booking.id.nonce, used: await chains.wasUsed(booking) };
      }),
    );
    nextExpired = from + fates.filter(({ used }) => used === undefined).length;
    if (fates.every(({ used }) => used === undefined)) return false;
    await store.update((state) => ({ state: fates.reduce(endBooking, state), result: undefined }));
    return true;
  }

  async function book(request: BookingRequest & Partial<OfChannel>): Promise<Booked> {
    const booked = await bookAtTrustedTime(request);
    if (booked.ok) return booked;
    // The places are those of all buckets.
    const pot = booked.isByCount ? undefined : request.asset.pot.name;
    if (!(await reclaim(pot))) return booked;
    return bookAtTrustedTime(request);
  }

  return {
    book,
    bookExposure: (request) =>
      book({ ...request, validBefore: noEnd, insteadOf: [request.id.nonce] }),
    lowerExposure: ({ id, asset, exposureAt }) =>
      store.update((state) => {
        const amountAt = (ceiling: bigint) => inBucket(asset, exposureAt(ceiling));
        const lowered = { nonce: id.nonce, pot: asset.pot.name, amountAt };
        return { state: lowerBooking(state, lowered), result: undefined };
      }),
    exposures: () =>
      store.update((state) => {
        const open = state.open.filter(({ validBefore }) => validBefore === noEnd);
        return { state, result: new Map(open.map((each) => [each.id.nonce, each])) };
      }),
    spendExposure: ({ id, asset, amount, host }) =>
      store.update((state) => {
        const hour = hourOf(Math.max(now(), state.bookedAt));
        const part = { id, hour, pot: asset.pot.name, host, amount: inBucket(asset, amount) };
        return {
          state: spendOfBooking(state, { ...part, validBefore: noEnd }),
          result: undefined,
        };
      }),
    holds: (id) =>
      store.update((state) => ({
        state,
        result: state.open.some((each) => authorizationKey(each.id) === authorizationKey(id)),
      })),
    settle: (nonce) =>
      store.update((state) => ({ state: settleBooking(state, nonce), result: undefined })),
    release: (nonce) =>
      store.update((state) => ({ state: releaseBooking(state, nonce), result: undefined })),
  };
}

function endBooking(
  state: BudgetState,
  { nonce, used }: { nonce: string; used: boolean | undefined },
): BudgetState {
  if (used === undefined) return state;
  return used ? settleBooking(state, nonce) : releaseBooking(state, nonce);
}

/** Returns whether this host's booking of the bucket was as high before: it needs no new room. */
function isReplaced(state: BudgetState, booking: Booking, insteadOf: readonly string[]): boolean {
  const { pot, host, amount } = booking;
  const isSame = (each: Booking) =>
    insteadOf.includes(each.id.nonce) && each.pot === pot && each.host === host;
  return state.open.some((each) => isSame(each) && each.amount >= amount);
}

function findExceededLimit(
  state: BudgetState,
  booking: Booking,
  pot: BudgetBucket,
  isExposure = false,
): ExceededLimit | undefined {
  const { limits } = pot;
  const exceeds = (limit: bigint, booked: bigint) => booked + booking.amount > limit;
  const show = (amount: bigint) => showInBucket(pot, amount);
  const wanted = show(booking.amount);
  if (!isExposure && exceeds(limits.perPayment, 0n)) {
    return {
      message: `${wanted} is more than the budget allows for one payment: ${show(limits.perPayment)}`,
    };
  }
  const openAtHost = state.open.filter(({ host }) => host === booking.host).length;
  if (openAtHost >= maxOpen.atHost || state.open.length >= maxOpen.inAll) {
    return {
      message: `the budget keeps ${state.open.length} payments without an outcome, ${openAtHost} of them at ${booking.host}: more than it allows`,
      isByCount: true,
    };
  }
  const atHost = bookedIn(state, pot.name, booking.host);
  if (exceeds(limits.perHost, atHost)) {
    return {
      message: `${wanted} at ${booking.host}, after ${show(atHost)} in the last day, is more than the budget allows for one host in a day: ${show(limits.perHost)}`,
    };
  }
  const inAll = bookedIn(state, pot.name);
  if (exceeds(limits.perDay, inAll)) {
    return {
      message: `${wanted}, after ${show(inAll)} in the last day, is more than the budget allows in a day: ${show(limits.perDay)}`,
    };
  }
  return undefined;
}
