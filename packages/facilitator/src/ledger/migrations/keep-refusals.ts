import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/**
 * The reason for which a channel could not be claimed, beside its unclaimed money. The previous
 * release goes on beside this step: it leaves the columns as they are, and deletes them with the
 * row once all is claimed.
 */
export async function keepRefusals<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema.alterTable("channel_dues").addColumn("refusal", types.text).execute();
  await schema.alterTable("channel_dues").addColumn("refused_at", types.timestampMs).execute();
  await schema
    .createIndex("channel_dues_refused")
    .on("channel_dues")
    .column("network")
    .where(sql<SqlBool>`refusal is not null`)
    .execute();
}
