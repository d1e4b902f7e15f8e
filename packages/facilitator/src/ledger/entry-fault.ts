import type { Address, Network } from "@coinslot/protocol";
import { accounts } from "./books-schema.ts";

/** The part of an entry that is compared with its source. */
export interface ComparedEntry {
  debit: number;
  credit: number;
  amount: bigint;
  network: Network;
  /** The token; empty for the native coin. */
  asset: string;
  route_id: number | null;
}

/** A payment, a refund or a transaction, as its entry must describe it. */
export interface EntrySource {
  /** True if its money has moved. */
  isPaid: boolean;
  /** True if its money had moved, was final, and is lost. */
  isLost?: boolean;
  /** Default: a payment, or, by `isRefund`, a refund. */
  isGas?: boolean;
  isRefund: boolean;
  /** Of channels: claimed money that was sent to its recipient. */
  isPayout?: boolean;
  value: bigint;
  network: Network;
  asset: Address | "";
  /** `undefined`: any route. */
  route_id: number | null | undefined;
}

/** A fault of the entries of one source. */
export type EntryFault =
  | "missing_entry" // its money has moved, or is lost, and no entry says so
  | "extra_entry" // more than one, or one of a source whose money has not moved
  | "wrong_entry"; // of another amount, currency, account or route

const { wallet, income, refunds, float, gas, relayers, losses, claimed } = accounts;
const forwardPairs = new Set([
  ...[`${wallet}/${income}`, `${refunds}/${float}`, `${gas}/${relayers}`],
  ...[`${losses}/${income}`, `${wallet}/${claimed}`],
]);

/**
 * Compares the entries of a source with it. Each reversal ends an equal entry. One entry is
 * left where the money has moved or is lost; none is left elsewhere.
 */
export function findEntryFault(
  source: EntrySource,
  entries: readonly ComparedEntry[],
): EntryFault | undefined {
  const isForward = ({ debit, credit }: ComparedEntry) => forwardPairs.has(`${debit}/${credit}`);
  const left = entries.filter(isForward);
  // A reversal may be posted before the entry from before the books that it takes back.
  for (const reversal of entries.filter((entry) => !isForward(entry))) {
    const { debit, credit } = reversal;
    const ended = left.findIndex((other) =>
      isSame(other, { ...reversal, debit: credit, credit: debit }),
    );
    if (ended < 0) return "wrong_entry";
    left.splice(ended, 1);
  }
  const [entry, ...more] = left;
  if (!source.isPaid && source.isLost !== true) return entry && "extra_entry";
  if (entry === undefined) return "missing_entry";
  if (more.length > 0) return "extra_entry";
  return isSame(entry, dueEntry(source, entry)) ? undefined : "wrong_entry";
}

function dueEntry(source: EntrySource, entry: ComparedEntry): ComparedEntry {
  const { isPaid, value: amount, network, asset, route_id } = source;
  const movedBy = accountsOf(source);
  const [debit = 0, credit = 0] = isPaid ? movedBy : [losses, income];
  const route = route_id === undefined ? entry.route_id : route_id;
  return { debit, credit, amount, network, asset, route_id: route };
}

function accountsOf({ isGas, isRefund, isPayout }: EntrySource): [debit: number, credit: number] {
  if (isGas) return [gas, relayers];
  if (isPayout) return [wallet, claimed];
  return isRefund ? [refunds, float] : [wallet, income];
}

function isSame(one: ComparedEntry, other: ComparedEntry): boolean {
  const keys = ["debit", "credit", "amount", "network", "asset", "route_id"] as const;
  return keys.every((key) => one[key] === other[key]);
}
