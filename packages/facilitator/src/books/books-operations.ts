import * as z from "zod";
import { defineOperation } from "../operators/operation.ts";
import { type OperatorPlace, runOperation } from "../operators/run-operation.ts";
import { type ClosedPeriod, closePeriod, sealPeriod } from "./close-period.ts";

/** The end of a day in UTC: retention sums entries by whole days. */
const until = z.int().positive().max(8_640_000_000_000_000).multipleOf(86_400_000);

/** Closes a period of the books. */
const closeOperation = defineOperation({
  name: "books.close",
  access: "write",
  argument: z.object({ until }),
  result: z.object({ closedTo: z.number(), isNew: z.boolean() }),
  run: ({ ledger }, argument) => closePeriod(ledger, argument),
});

/** Keeps the digest of a closed period: its reader computes it, apart from the seller's work. */
const sealOperation = defineOperation({
  name: "books.seal",
  access: "write",
  argument: z.object({ until, digest: z.string().regex(/^[0-9a-f]{64}$/) }),
  result: z.object({}),
  async run({ ledger }, argument) {
    await sealPeriod(ledger, argument);
    return {};
  },
});

export const booksOperations = [closeOperation, sealOperation];

/**
 * Closes the books up to a time, from outside of the sellers, as `changeStops` makes its change.
 *
 * @param options `until`: Unix milliseconds, exclusive. The end of a day in UTC, at most now
 * @throws OperationRefusedError where something in the period is not final, by its names
 */
export function closeBooks(options: { url: OperatorPlace; until: number }): Promise<ClosedPeriod> {
  return runOperation(options.url, closeOperation, { until: options.until });
}

/** Keeps the digest of a closed period, unless it has one. */
export async function sealBooks(options: {
  url: OperatorPlace;
  until: number;
  digest: string;
}): Promise<void> {
  const { url, ...argument } = options;
  await runOperation(url, sealOperation, argument);
}
