import { type Address, toLowerHex } from "@coinslot/protocol";
import { sql } from "kysely";
import { hexToBytes } from "viem";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { defineOperation } from "../operators/operation.ts";
import { buyerSchema, readBuyer } from "./read-buyer.ts";

export const buyersListArgument = z.strictObject({
  /**
   * `recent`: those of the newest 2,000 payments, the last one first, on one page. `address`: all
   * of them, page by page. Default `address`.
   */
  order: z.enum(["recent", "address"]).optional(),
  /** Address of the last buyer of the page before. */
  cursor: z
    .string()
    .regex(/^0x[0-9a-f]{40}$/, "is no cursor of a page")
    .optional(),
  /** Default 50. */
  limit: z.int().min(1).max(200).optional(),
});

export const buyersListResult = z.object({
  buyers: z.array(buyerSchema),
  nextCursor: z.string().nullable(),
});

/** A page of buyers. */
export type BuyersList = z.infer<typeof buyersListResult>;

const newestPayments = 2_000;

/** The buyers of a ledger: payments, sums and refunds of each. */
export const listBuyersOperation = defineOperation({
  name: "buyers.list",
  access: "read",
  argument: buyersListArgument,
  result: buyersListResult,
  run: (reads, { order = "address", cursor, limit = 50 }) =>
    inSnapshot(reads, async (snapshot) => {
      const found =
        order === "recent"
          ? await findRecent(snapshot, limit)
          : await findAfter(snapshot, cursor ?? "0x", limit + 1);
      const buyers: BuyersList["buyers"] = [];
      for (const address of found.slice(0, limit)) buyers.push(await readBuyer(snapshot, address));
      const isMore = order === "address" && found.length > limit;
      return { buyers, nextCursor: isMore ? (buyers.at(-1)?.address ?? null) : null };
    }),
});

/** Payers of the newest payments, in the order of their last ones. */
async function findRecent({ db }: LedgerReads, limit: number): Promise<Address[]> {
  const rows = await db
    .selectFrom("payments")
    .select(["payer", "refund_of"])
    .orderBy("id", "desc")
    .limit(newestPayments)
    .execute();
  const payers = rows.filter(({ refund_of }) => refund_of === null).map(({ payer }) => payer);
  return [...new Set(payers)].slice(0, limit);
}

/**
 * The next payers by their addresses. Each index of payers is entered once for each of them: none
 * is read as a whole, however many payments a payer has.
 */
async function findAfter(reads: LedgerReads, cursor: string, limit: number): Promise<Address[]> {
  const floats = new Set(await readFloats(reads));
  const found = new Set<Address>();
  let after = cursor;
  while (found.size < limit) {
    const { rows } = await sql<{ payer: Address | Uint8Array }>`
      with recursive next(payer, n) as (
        select min(payer), 1 from payments where payer > ${after}
        union all
        select (select min(payer) from payments where payer > next.payer), n + 1
        from next where next.payer is not null and n < ${sql.lit(limit)}
      )
      select payer from next where payer is not null
    `.execute(reads.db);
    const archived = await findArchivedAfter(reads, after, limit);
    const current = rows.map(({ payer }) => addressOf(payer));
    const merged = [...new Set([...current, ...archived])].sort();
    // Beyond the end of a full list, the other one may lack its own.
    const ends = [current, archived].filter(({ length }) => length === limit);
    const last = ends.map((list) => list.at(-1) ?? "").sort()[0];
    const sure = merged.filter((payer) => last === undefined || payer <= last);
    for (const payer of sure) {
      if (!floats.has(payer) && found.size < limit) found.add(payer);
    }
    if (last === undefined) break;
    after = last;
  }
  return [...found];
}

async function findArchivedAfter(
  { db }: LedgerReads,
  after: string,
  limit: number,
): Promise<Address[]> {
  const bytes = hexToBytes(toLowerHex(`0x${after.slice(2)}`));
  const { rows } = await sql<{ payer: Uint8Array }>`
    with recursive next(payer, n) as (
      select (select payer from archived_payments where payer > ${bytes} order by payer limit 1), 1
      union all
      select (
        select archived_payments.payer from archived_payments
        where archived_payments.payer > next.payer order by archived_payments.payer limit 1
      ), n + 1
      from next where next.payer is not null and n < ${sql.lit(limit)}
    )
    select payer from next where payer is not null
  `.execute(db);
  return rows.map(({ payer }) => addressOf(payer));
}

/** The accounts that pay refunds: their rows are no sales. */
async function readFloats({ db }: LedgerReads): Promise<string[]> {
  const { rows } = await sql<{ float: string }>`
    select distinct float from refunds where float is not null
  `.execute(db);
  return rows.map(({ float }) => float);
}

function addressOf(value: Address | Uint8Array): Address {
  return typeof value === "string" ? value : `0x${Buffer.from(value).toString("hex")}`;
}
