import type { Address, Hex, Network } from "@coinslot/protocol";
import { type Account, accounts } from "../ledger/books-schema.ts";

/**
 * Kind of a movement. Of channels: `locked`: a buyer's money came into a channel, or, taken back,
 * it left it; `charge`; `claim`: the escrow owes it to the recipient; `payout`: it was sent there.
 */
export type EntryKind =
  | "payment"
  | "refund"
  | "gas"
  | "loss"
  | "locked"
  | "charge"
  | "claim"
  | "payout";

/** A movement of money in the books. */
export interface BookEntry {
  /** Order of posting. */
  id: number;
  /** Unix milliseconds: the period that it belongs to. */
  postedAt: number;
  /** The payment; of gas the transaction; of a channel its id, or that of the payout. */
  sourceId: string;
  kind: EntryKind;
  /** True if it takes an earlier entry of its source back. */
  isReversal: boolean;
  /** Account that receives the amount. */
  debit: Account;
  /** Account that gives it. */
  credit: Account;
  /** In the smallest unit. */
  amount: bigint;
  network: Network;
  /** The token; `undefined`: the native coin. */
  asset: Address | undefined;
  route: string | undefined;
  payTo: string | undefined;
  payer: Address | undefined;
  transaction: Hex | undefined;
  /** `undefined` where its source is not kept any more. */
  isFinal: boolean | undefined;
}

/** Entries of one day, currency, route and pair of accounts. */
export interface BookSum
  extends Pick<BookEntry, "kind" | "isReversal" | "debit" | "credit" | "network" | "asset"> {
  /** Whole days since 1970, in UTC. */
  day: number;
  route: string | undefined;
  count: number;
  amount: bigint;
}

/** A time for which books are read. Unix milliseconds. */
export interface BookRange {
  from: number;
  /** Exclusive. */
  before: number;
}

const names = new Map<number, Account>(
  Object.entries(accounts).map(([name, number]) => [number, name as Account]),
);

/** @throws RangeError for a number of a newer program */
export function accountOf(number: number): Account {
  const name = names.get(number);
  if (name === undefined) throw new RangeError(`The books have an unknown account ${number}`);
  return name;
}

type Kind = Pick<BookEntry, "kind" | "isReversal">;

const { wallet, income, refunds, float, gas, relayers, losses } = accounts;
const { receivable, claimed, locked, escrow } = accounts;
const kinds = new Map<number, Kind>([
  [pairOf(wallet, income), { kind: "payment", isReversal: false }],
  [pairOf(income, wallet), { kind: "payment", isReversal: true }],
  [pairOf(refunds, float), { kind: "refund", isReversal: false }],
  [pairOf(float, refunds), { kind: "refund", isReversal: true }],
  [pairOf(gas, relayers), { kind: "gas", isReversal: false }],
  [pairOf(relayers, gas), { kind: "gas", isReversal: true }],
  [pairOf(losses, income), { kind: "loss", isReversal: false }],
  [pairOf(income, losses), { kind: "loss", isReversal: true }],
  [pairOf(locked, escrow), { kind: "locked", isReversal: false }],
  [pairOf(escrow, locked), { kind: "locked", isReversal: true }],
  [pairOf(receivable, income), { kind: "charge", isReversal: false }],
  [pairOf(income, receivable), { kind: "charge", isReversal: true }],
  [pairOf(claimed, receivable), { kind: "claim", isReversal: false }],
  [pairOf(receivable, claimed), { kind: "claim", isReversal: true }],
  [pairOf(wallet, claimed), { kind: "payout", isReversal: false }],
  [pairOf(losses, receivable), { kind: "loss", isReversal: false }],
  [pairOf(receivable, losses), { kind: "loss", isReversal: true }],
]);

/** The kind of a movement, by its accounts. */
export function kindOf(debit: number, credit: number): Kind {
  const kind = kinds.get(pairOf(debit, credit));
  if (kind === undefined) {
    throw new RangeError(`The books have an unknown movement ${debit}/${credit}`);
  }
  return kind;
}

function pairOf(debit: number, credit: number): number {
  return debit * 1_000 + credit;
}
