import { toLowerHex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import type { Refund, RefundFilter, RefundPage } from "./refund.ts";
import { toRefund } from "./refund-row.ts";

/** Lists refunds, the newest first. */
export async function listRefunds(
  { db, dialect }: LedgerReads,
  filter: RefundFilter = {},
): Promise<RefundPage> {
  const limit = Math.min(Math.max(filter.limit ?? 100, 1), 1000);
  const { payment, payer, network, state, cursor } = filter;
  let query = db
    .selectFrom("refunds")
    .selectAll()
    .orderBy("id", "desc")
    .limit(limit + 1);
  if (payment !== undefined) query = query.where("payment_id", "=", payment);
  if (payer !== undefined) query = query.where("payer", "=", toLowerHex(payer));
  if (network !== undefined) query = query.where("network", "=", network);
  if (state !== undefined) query = query.where("state", "=", state);
  if (cursor !== undefined) query = query.where("id", "<", cursor);
  const rows = await query.execute();
  const refunds = rows.slice(0, limit).map((row) => toRefund(row, dialect));
  return { refunds, nextCursor: rows.length > limit ? refunds.at(-1)?.id : undefined };
}

/** A refund by its id. */
export async function getRefund(
  { db, dialect }: LedgerReads,
  id: string,
): Promise<Refund | undefined> {
  const row = await db.selectFrom("refunds").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toRefund(row, dialect);
}
