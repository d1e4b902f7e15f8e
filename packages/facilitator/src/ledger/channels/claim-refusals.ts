import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { ChannelKey } from "./channel.ts";

/** A failed trial of a channel's claim. */
export interface ClaimRefusal {
  /** The escrow's error, or a node's words. */
  error: string;
  /** Unix milliseconds. */
  at: number;
}

const maxLength = 300;

/**
 * Notes why channels could not be claimed, beside their unclaimed money: every process shows it.
 * One whose money was claimed meanwhile has no such row, and nothing is noted.
 */
export async function recordRefusals(
  ledger: LedgerContext,
  refusals: readonly (ChannelKey & ClaimRefusal)[],
): Promise<void> {
  if (refusals.length === 0) return;
  await ledger.write(async (transaction) => {
    for (const { network, contract, channelId, error, at } of refusals) {
      await transaction
        .updateTable("channel_dues")
        .set({ refusal: printable(error), refused_at: at })
        .where("network", "=", network)
        .where("contract", "=", contract)
        .where("channel_id", "=", channelId)
        .execute();
    }
  }, forProcess);
}

/** A node chooses the words, and PostgreSQL takes no NUL. */
function printable(error: string): string {
  return error.replace(/\p{Cc}+/gu, " ").slice(0, maxLength);
}

/** Forgets the refusals of channels of one contract, in the transaction that stores their claim. */
export async function forgetRefusals(
  dialect: Dialect,
  transaction: Transaction<LedgerSchema>,
  channels: readonly ChannelKey[],
): Promise<void> {
  const [first] = channels;
  if (first === undefined) return;
  await transaction
    .updateTable("channel_dues")
    .set({ refusal: null, refused_at: null })
    .where("network", "=", first.network)
    .where("contract", "=", first.contract)
    .where("channel_id", "in", dialect.among(channels.map(({ channelId }) => channelId)))
    .where("refusal", "is not", null)
    .execute();
}

/** Numbers of channels that cannot be claimed at the moment, by network. */
export async function countRefusals({
  db,
}: LedgerReads): Promise<{ network: Network; count: number }[]> {
  const rows = await db
    .selectFrom("channel_dues")
    .select(["network", ({ fn }) => fn.countAll().as("count")])
    .where("refusal", "is not", null)
    .groupBy("network")
    .orderBy("network")
    .execute();
  return rows.map(({ network, count }) => ({ network, count: Number(count) }));
}

/** The refusal of a row, where it has one. */
export function toRefusal(
  row: { refusal: string | null; refused_at: number | null } | undefined,
): ClaimRefusal | undefined {
  if (!row || row.refusal === null || row.refused_at === null) return undefined;
  return { error: row.refusal, at: row.refused_at };
}
