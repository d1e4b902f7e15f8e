import { getChainPreset } from "@coinslot/chain";
import { type Address, chainIdOf, formatMoney, type Network } from "@coinslot/protocol";
import * as z from "zod";
import { defineOperation } from "../operators/operation.ts";
import { type Money, moneySchema, timeArgument, toMoney } from "../reads/wire-forms.ts";
import { createBooksReader } from "./books-reader.ts";
import type { BookFault } from "./check-page.ts";

/** A time of at most this many days: a day's sums are read at a time. */
const maxDays = 400;
const dayMs = 86_400_000;
/** One check compares about as many rows, and the next one goes on. */
const maxRows = 50_000;
const maxFaults = 100;

const range = {
  /** Time of posting: since then, and before then. */
  from: timeArgument,
  to: timeArgument,
};

/** Sums of the books by kind, currency and route, and the closed periods. */
export const booksSumsOperation = defineOperation({
  name: "books.sums",
  access: "read",
  argument: z.strictObject(range).refine(({ from, to }) => to - from <= maxDays * dayMs, {
    message: `is a time of more than ${maxDays} days`,
  }),
  result: z.object({
    sums: z.array(
      z.object({
        /** `payment`, `refund` or `gas`. A reversal is subtracted. */
        kind: z.string(),
        route: z.string().nullable(),
        count: z.number(),
        money: moneySchema,
      }),
    ),
    /** The newest first. */
    periods: z.array(
      z.object({ closedTo: z.string(), closedAt: z.string(), digest: z.string().nullable() }),
    ),
    /** Payments from before the books are being posted. */
    isUnfinished: z.boolean(),
    /** Transactions whose gas has no known price: it is not in the books. */
    unpricedTransactions: z.number(),
  }),
  timeoutMs: 60_000,
  async run(reads, { from, to }) {
    const books = createBooksReader(reads);
    const totals = new Map<string, Total>();
    for await (const sums of books.sums({ from, before: to })) {
      for (const { kind, isReversal, network, asset = "native", route, count, amount } of sums) {
        const key = JSON.stringify([kind, network, asset, route]);
        const total = totals.get(key) ?? { kind, network, asset, route, count: 0, amount: 0n };
        totals.set(key, {
          ...total,
          count: total.count + (isReversal ? -count : count),
          amount: total.amount + (isReversal ? -amount : amount),
        });
      }
    }
    const { periods, isUnfinished, unpricedTransactions } = await books.status();
    return {
      sums: [...totals.values()].map(({ kind, route, count, network, asset, amount }) => ({
        ...{ kind, route: route ?? null, count },
        money: asset === "native" ? toCoins(network, amount) : toMoney(network, asset, amount),
      })),
      periods: periods.map(({ closedTo, closedAt, digest }) => ({
        closedTo: new Date(closedTo).toISOString(),
        closedAt: new Date(closedAt).toISOString(),
        digest: digest ?? null,
      })),
      isUnfinished,
      unpricedTransactions,
    };
  },
});

/** The form of an amount of a chain's own coin. */
function toCoins(network: Network, amount: bigint): Money {
  const { symbol, decimals } = getChainPreset(chainIdOf(network)).nativeCurrency;
  const whole = formatMoney(amount, decimals);
  return { network, asset: "native", symbol, value: amount.toString(), amount: whole };
}

interface Total {
  kind: string;
  network: Network;
  asset: Address | "native";
  route: string | undefined;
  count: number;
  amount: bigint;
}

/** One step of a check of the books against the ledger. The caller goes on at `next`. */
export const booksCheckOperation = defineOperation({
  name: "books.check",
  access: "read",
  argument: z.strictObject(range),
  result: z.object({
    /** Payments and entries that were compared. */
    compared: z.number(),
    /** The first 100 of this step. */
    faults: z.array(
      z.object({
        fault: z.string(),
        sourceId: z.string(),
        network: z.string(),
        transaction: z.string().nullable(),
      }),
    ),
    /** All that was created before it is checked; `null` at the end. */
    next: z.string().nullable(),
  }),
  timeoutMs: 60_000,
  async run(reads, { from, to }) {
    const faults: BookFault[] = [];
    let compared = 0;
    let position = from;
    for await (const page of createBooksReader(reads).check({ from, before: to })) {
      compared += page.count;
      faults.push(...page.faults);
      const isEnd = page.position > position;
      position = page.position;
      // Before that, the next check would compare the same rows, or leave some out.
      if (isEnd && (compared >= maxRows || faults.length >= maxFaults)) break;
    }
    return {
      compared,
      faults: faults.slice(0, maxFaults).map((each) => ({
        ...each,
        transaction: each.transaction ?? null,
      })),
      next: position < to ? new Date(position).toISOString() : null,
    };
  },
});

export const booksReadOperations = [booksSumsOperation, booksCheckOperation];
