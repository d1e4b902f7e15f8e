import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * The voucher before the last one of a channel: a claim that leaves the last charge out shows it.
 * The previous release goes on beside this step, and leaves the columns as they are: one that
 * covers too little is not used.
 */
export async function keepVoucherBefore<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema.alterTable("channels").addColumn("before_ceiling", types.amount).execute();
  await schema.alterTable("channels").addColumn("before_signature", types.text).execute();
}
