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
  /** In the unit of the pot: 10^-18 dollars, or the token's smallest unit. */
  amount: bookedAmount,
};

/**
 * What has been booked in the last day. Payments that are known to be made are summed by hour, pot
 * and host, so the state does not grow with their number. Those that are not are kept one by one:
 * each may still be released when it is certain that it never will be made.
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
    }),
  ),
});

/** What has been booked in the last day. */
export type BudgetState = z.infer<typeof budgetStateSchema>;

/** An amount that is promised to one authorization. */
export type Booking = BudgetState["open"][number];

export const emptyBudget: BudgetState = { version: 1, spent: [], open: [] };

/** The hour of a time in unix milliseconds. */
export function hourOf(now: number): number {
  return Math.floor(now / hourMs);
}

/** What is booked in a pot, at one host or at all of them. */
export function bookedIn(state: BudgetState, pot: string, host?: string): bigint {
  return [...state.spent, ...state.open]
    .filter((entry) => entry.pot === pot && (host === undefined || entry.host === host))
    .reduce((sum, entry) => sum + entry.amount, 0n);
}

/** Drops what is more than a day old. An hour counts until all of it is. */
export function forgetOld(state: BudgetState, now: number): BudgetState {
  const isCounted = ({ hour }: { hour: number }) => hour >= hourOf(now) - hoursCounted;
  if (state.spent.every(isCounted) && state.open.every(isCounted)) return state;
  return { ...state, spent: state.spent.filter(isCounted), open: state.open.filter(isCounted) };
}

/** Promises an amount. Whether it is within the limits is the caller's question. */
export function openBooking(state: BudgetState, booking: Booking): BudgetState {
  return { ...state, open: [...state.open, booking] };
}

/** The payment is made: its amount joins the sum of its hour. Nothing happens if it is not open. */
export function settleBooking(state: BudgetState, nonce: string): BudgetState {
  const settled = state.open.find((each) => each.id.nonce === nonce);
  if (settled === undefined) return state;
  const { hour, pot, host } = settled;
  const isSame = (entry: BudgetState["spent"][number]) =>
    entry.hour === hour && entry.pot === pot && entry.host === host;
  const before = state.spent.find(isSame)?.amount ?? 0n;
  return {
    ...releaseBooking(state, nonce),
    spent: [
      ...state.spent.filter((entry) => !isSame(entry)),
      { hour, pot, host, amount: before + settled.amount },
    ],
  };
}

/** The payment was not made and never will be: its amount is free again. */
export function releaseBooking(state: BudgetState, nonce: string): BudgetState {
  const open = state.open.filter((each) => each.id.nonce !== nonce);
  return open.length === state.open.length ? state : { ...state, open };
}
