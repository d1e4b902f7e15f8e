import * as z from "zod";
import { documented } from "./documentation.ts";
import { addressText, blockchainName, tokenName } from "./names.ts";

/** Maximum number of records in one answer. */
export const maxPage = 1_000;
/** Default number of records. */
export const usualPage = 10;

export const pageSize = z
  .int(`must be a whole number from 1 to ${maxPage}`)
  .min(1, `must be a whole number from 1 to ${maxPage}`)
  .max(maxPage, `must be a whole number from 1 to ${maxPage}`);

const time = z
  .int("must be a whole number of milliseconds since the Unix epoch")
  .min(0, "must be a whole number of milliseconds since the Unix epoch");

const secondsEndAt = 100_000_000_000;

/**
 * Published clients send seconds where milliseconds are specified. A value below 10^11 would, as
 * milliseconds, lie before March 1973, earlier than any block: it is taken as seconds.
 */
export function toMilliseconds(timestamp: number): number {
  return timestamp < secondsEndAt ? timestamp * 1_000 : timestamp;
}

/**
 * A whole number in a query string: digits only, so no sign, point, exponent, space or hexadecimal.
 */
export function inQuery<Output>(schema: z.ZodType<Output, number>, message: string) {
  return z
    .string(message)
    .regex(/^[0-9]{1,16}$/, message)
    .transform(Number)
    .pipe(schema);
}

const limitInQuery = inQuery(pageSize, `must be a whole number from 1 to ${maxPage}`);
const timeInQuery = inQuery(time, "must be a whole number of milliseconds since the Unix epoch");

const aboutLimit = "Maximum number of transfers.";
const aboutFrom =
  "Inclusive lower bound, in milliseconds since the Unix epoch. Values below 10^11 are taken as seconds.";
const aboutTo =
  "Inclusive upper bound, in milliseconds since the Unix epoch. Values below 10^11 are taken as seconds. Absent: up to the newest.";

/** The query string of a transfer history. */
export const transfersQueryString = z.object({
  limit: documented(limitInQuery.default(usualPage), {
    description: `${aboutLimit} CSV without a limit has all of them.`,
  }),
  fromTs: documented(timeInQuery.default(0), { description: aboutFrom }),
  toTs: documented(timeInQuery.optional(), { description: aboutTo }),
  sort: documented(z.enum(["asc", "desc"], "must be asc or desc").default("desc"), {
    description: "By block, then by position in it: desc has the newest first.",
  }),
  cursor: documented(z.string().max(200).optional(), {
    description: 'Cursor of the end of the previous page, from its Link header, rel="next".',
  }),
});

const balanceFields = {
  blockchain: blockchainName,
  token: tokenName,
  address: addressText,
};

/** One item of a batch of balances. */
export const balanceQuery = documented(z.strictObject(balanceFields), { id: "BalanceQuery" });

export type BalanceQuery = z.infer<typeof balanceQuery>;

/** One item of a batch of transfer histories. */
export const transferQuery = documented(
  z.strictObject({
    ...balanceFields,
    limit: documented(pageSize.default(usualPage), { description: aboutLimit }),
    fromTs: documented(time.default(0), { description: aboutFrom }),
    toTs: documented(time.optional(), { description: aboutTo }),
  }),
  { id: "TransferQuery" },
);

const batchSize = "must be an array of 1 to 10 items";

/** The body of a batch of `item`s. */
export function batchOf<Item extends z.ZodType>(item: Item) {
  return z.array(item, batchSize).min(1, batchSize).max(10, batchSize);
}
