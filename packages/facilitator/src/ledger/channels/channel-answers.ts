import { sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";

/** An answer under a buyer's key, with the charge that it belongs to. */
interface AnsweredCharge extends ChannelKey {
  id: string;
  answer: { sealed: Uint8Array; expiresAt: number };
}

/** Keeps the answers of charges, in place of those of the charges before them. */
export async function keepChannelAnswers(
  transaction: Transaction<LedgerSchema>,
  charges: readonly AnsweredCharge[],
): Promise<void> {
  if (charges.length === 0) return;
  const rows = charges.map((charge) => ({
    ...keyColumns(charge),
    charge_id: charge.id,
    sealed: charge.answer.sealed,
    expires_at: charge.answer.expiresAt,
  }));
  await transaction
    .insertInto("channel_answers")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["network", "contract", "channel_id"]).doUpdateSet(({ ref }) => ({
        charge_id: ref("excluded.charge_id"),
        sealed: ref("excluded.sealed"),
        expires_at: ref("excluded.expires_at"),
      })),
    )
    .execute();
}

/** The kept answer of a charge, if it is there and has not expired. */
export async function readChannelAnswer(
  { db, now }: LedgerReads & Pick<LedgerContext, "now">,
  { network, contract, channelId, id }: ChannelKey & { id: string },
): Promise<Uint8Array | undefined> {
  const row = await db
    .selectFrom("channel_answers")
    .select("sealed")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where("charge_id", "=", id)
    .where("expires_at", ">", now())
    .executeTakeFirst();
  return row?.sealed;
}

/** Bytes of all kept answers of a contract's channels. Reads each of them. */
export async function measureChannelAnswers(
  { db }: LedgerReads,
  { network, contract }: Omit<ChannelKey, "channelId">,
): Promise<number> {
  const { bytes } = await db
    .selectFrom("channel_answers")
    .select(sql<number | string | null>`sum(length(sealed))`.as("bytes"))
    .where("network", "=", network)
    .where("contract", "=", contract)
    .executeTakeFirstOrThrow();
  return Number(bytes ?? 0);
}

/** Deletes the answers that have expired. */
export async function forgetChannelAnswers(ledger: LedgerContext): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction.deleteFrom("channel_answers").where("expires_at", "<=", ledger.now()).execute(),
    forProcess,
  );
}

/** Deletes the answers of some channels, whose room is needed. */
export async function evictChannelAnswers(
  ledger: LedgerContext,
  {
    network,
    contract,
    channelIds,
  }: Omit<ChannelKey, "channelId"> & { channelIds: readonly string[] },
): Promise<void> {
  if (channelIds.length === 0) return;
  await ledger.write(
    (transaction) =>
      transaction
        .deleteFrom("channel_answers")
        .where("network", "=", network)
        .where("contract", "=", contract)
        .where(
          ({ ref }) => sql<boolean>`${ref("channel_id")} in ${ledger.dialect.among(channelIds)}`,
        )
        .execute(),
    forProcess,
  );
}
