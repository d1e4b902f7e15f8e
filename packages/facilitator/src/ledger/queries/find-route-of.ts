import type { LedgerReads } from "../ledger-context.ts";

/** Texts of the dictionary of sold things, by their ids. */
export async function findSoldTexts(
  { db }: LedgerReads,
  ids: readonly number[],
): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("sold_names")
    .select(["id", "name"])
    .where("id", "in", ids)
    .execute();
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** The route that a payment has bought, also an archived one, if it names one. */
export async function findRouteOf(
  reads: LedgerReads,
  paymentId: string,
): Promise<string | undefined> {
  const { db } = reads;
  const ofTable = (table: "payments" | "archived_payments") =>
    db.selectFrom(table).select("route_id").where("id", "=", paymentId).executeTakeFirst();
  const id = ((await ofTable("payments")) ?? (await ofTable("archived_payments")))?.route_id;
  return id === null || id === undefined ? undefined : (await findSoldTexts(reads, [id])).get(id);
}
