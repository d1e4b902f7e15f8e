import { addressSchema, bytes32Schema, networkSchema } from "@coinslot/protocol";
import * as z from "zod";

const hourMs = 3_600_000;
const hoursCounted = 24;

const bookedAmount = z
  .string()
  .regex(/^[0-9]{1,120}$/)
  .transform(BigInt);

const booking = {
  /** Hours since 1970 in which it was booked. */
  hour: z.number().int(),
  pot: z.string(),
  host: z.string(),
  /** In the unit of the bucket: 10^-18 dollars, or the token's smallest unit. */
  amount: bookedAmount,
};

/**
 * Bookings of the last day. Payments known to be made are summed by hour, bucket and host. So the
 * state does not grow with their number. Unconfirmed payments are kept one by one: each is released
 * once it certainly never will be made.
 */
export const budgetStateSchema = z.object({
  version: z.literal(1),
  spent: z.array(z.object(booking)),
  open: z.array(
    z.object({
      ...booking,
      /** The authorization, whose nonce no other payment has. */
      id: z.object({
        network: networkSchema,
        asset: addressSchema,
        payer: addressSchema,
        nonce: bytes32Schema,
      }),
      /** Unix seconds. */
      validBefore: z.number().int(),
      /**
       * Of a channel: the ceiling before its last raise, in the token's smallest unit. A file of
       * channels with a lower one is older than this booking.
       */
      ceiling: bookedAmount.optional(),
    }),
  ),
  /** Unix milliseconds of the last booking; 0 before the first, and in files of version 0.1.0. */
  bookedAt: z.number().int().default(0),
});

/** Bookings of the last day. */
export type BudgetState = z.infer<typeof budgetStateSchema>;

/** An amount committed to one authorization. */
export type Booking = BudgetState["open"][number];

export const emptyBudget: BudgetState = { version: 1, spent: [], open: [], bookedAt: 0 };

/** The hour of a time in unix milliseconds. */
export function hourOf(now: number): number {
  return Math.floor(now / hourMs);
}

/** Booked amount of a bucket, at one host or at all of them. */
export function bookedIn(state: BudgetState, pot: string, host?: string): bigint {
  return [...state.spent, ...state.open]
    .filter((entry) => entry.pot === pot && (host === undefined || entry.host === host))
    .reduce((sum, entry) => sum + entry.amount, 0n);
}

/**
 * Returns whether this clock needs a second source. It would free bookings, or has leapt by more
 * than an hour since the last one. Otherwise a clock that jumps would begin a new day.
 */
export function needsTrustedClock(state: BudgetState, now: number): boolean {
  const leapt = state.bookedAt !== 0 && Math.abs(now - state.bookedAt) > hourMs;
  const isAhead = ({ hour }: { hour: number }) => hour > latestHour(now);
  return (
    leapt ||
    state.spent.some(isAhead) ||
    !state.spent.every(isCountedAt(now)) ||
    !state.open.every(mayBeCountedAt(now))
  );
}

/**
 * Brings the state to a trusted time. Drops bookings older than a day; an hour counts until all of
 * it is. A booking made while a clock ran ahead counts as booked now: it is no younger.
 */
export function bringUpToDate(state: BudgetState, now: number): BudgetState {
  const latest = latestHour(now);
  const notAhead = <T extends { hour: number }>(entry: T): T =>
    entry.hour > latest ? { ...entry, hour: latest } : entry;
  const spent = state.spent.filter(isCountedAt(now)).map(notAhead);
  return {
    ...state,
    spent: spent.reduce<BudgetState["spent"]>(addSpent, []),
    open: state.open.filter(mayBeCountedAt(now)).map(notAhead),
    bookedAt: now,
  };
}

/** The last hour of a payment that is booked now and valid for the usual minutes. */
function latestHour(now: number): number {
  return hourOf(now) + 1;
}

function isCountedAt(now: number): (entry: { hour: number }) => boolean {
  return ({ hour }) => hour >= hourOf(now) - hoursCounted;
}

/** An authorization that ended more than a day ago may have been used, but not within the day. */
function mayBeCountedAt(now: number): (entry: Booking) => boolean {
  const isCounted = isCountedAt(now);
  return (booking) => isCounted({ hour: lastHourOf(booking) });
}

/** The last hour in which the tokens may have moved. */
function lastHourOf({ hour, validBefore }: Booking): number {
  return Math.max(hour, hourOf(validBefore * 1000));
}

/** Commits an amount, once per nonce. The caller checks the limits. */
export function openBooking(state: BudgetState, booking: Booking): BudgetState {
  if (isOpen(state, booking.id.nonce)) return state;
  return { ...state, open: [...state.open, booking] };
}

/**
 * The booking of a channel in the place of its open one: neither its amount nor its ceiling falls.
 * An older file of channels knows less than was signed.
 */
export function raiseBooking(state: BudgetState, booking: Booking): Booking {
  const { id, pot, host, amount, ceiling = 0n } = booking;
  const before = state.open.find(
    (each) => each.id.nonce === id.nonce && each.pot === pot && each.host === host,
  );
  if (before === undefined) return booking;
  return {
    ...booking,
    amount: larger(before.amount, amount),
    ceiling: larger(before.ceiling ?? 0n, ceiling),
  };
}

function larger(one: bigint, other: bigint): bigint {
  if (one > other) return one;
  return other;
}

/** Returns whether an amount is committed to this authorization. */
export function isOpen(state: BudgetState, nonce: string): boolean {
  return state.open.some((each) => each.id.nonce === nonce);
}

/**
 * Marks the payment as made: its amount joins the sum of an hour. A receipt does not prove the
 * time, so that hour is the last in which it can be made. No effect if it is not open.
 */
export function settleBooking(state: BudgetState, nonce: string): BudgetState {
  const settled = state.open.find((each) => each.id.nonce === nonce);
  if (settled === undefined) return state;
  const { pot, host, amount } = settled;
  const entry = { hour: lastHourOf(settled), pot, host, amount };
  return { ...releaseBooking(state, nonce), spent: addSpent(state.spent, entry) };
}

/**
 * Moves a part of an open booking to the sums of spent money, in the given hour. An
 * amount beyond the booking counts as spent all the same. No effect on the rest of it.
 */
export function spendOfBooking(state: BudgetState, part: Booking): BudgetState {
  const { hour, pot, host, amount, id } = part;
  const spent = addSpent(state.spent, { hour, pot, host, amount });
  const open = state.open.flatMap((each) => {
    if (each.id.nonce !== id.nonce || each.pot !== pot) return [each];
    return each.amount > amount ? [{ ...each, amount: each.amount - amount }] : [];
  });
  return { ...state, spent, open };
}

function addSpent(
  spent: BudgetState["spent"],
  added: BudgetState["spent"][number],
): BudgetState["spent"] {
  const { hour, pot, host } = added;
  const isSame = (entry: BudgetState["spent"][number]) =>
    entry.hour === hour && entry.pot === pot && entry.host === host;
  const before = spent.find(isSame)?.amount ?? 0n;
  return [
    ...spent.filter((entry) => !isSame(entry)),
    { hour, pot, host, amount: before + added.amount },
  ];
}

/**
 * Lowers an open booking of a bucket to an amount, which may follow from the ceiling in it; 0 frees
 * it. No effect on a smaller one, or on one of another bucket: its unit may differ. Nothing is
 * nothing in each.
 */
export function lowerBooking(
  state: BudgetState,
  lowered: { nonce: string; pot: string; amountAt: (ceiling: bigint) => bigint },
): BudgetState {
  const { nonce, pot, amountAt } = lowered;
  const before = state.open.find((each) => each.id.nonce === nonce);
  if (before === undefined) return state;
  const amount = amountAt(before.ceiling ?? 0n);
  if (amount === 0n) return releaseBooking(state, nonce);
  if (before.pot !== pot || amount >= before.amount) return state;
  return {
    ...state,
    open: state.open.map((each) => (each === before ? { ...each, amount } : each)),
  };
}

/** Frees the amount of a payment that was not made and never will be. */
export function releaseBooking(state: BudgetState, nonce: string): BudgetState {
  const open = state.open.filter((each) => each.id.nonce !== nonce);
  return open.length === state.open.length ? state : { ...state, open };
}
