import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * The highest ceiling of a channel that a claim has shown to all, where it covers more than was
 * charged. The previous release goes on beside this step, and sells by no channel.
 */
export async function publishVouchers<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema.alterTable("channel_states").addColumn("published", types.amount).execute();
}
