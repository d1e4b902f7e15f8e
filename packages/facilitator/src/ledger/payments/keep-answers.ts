import type { Address, SealedAnswer } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { readCommonTime } from "../queries/common-time.ts";
import type { LedgerSchema } from "../schema.ts";
import type { AnswerName } from "./answer-quotas.ts";

/**
 * Stores sealed answers until `expiresAt`. The key of an earlier payment that ended unpaid moves to
 * the new payment.
 */
export async function keepAnswers(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  answers: readonly { paymentId: string; payer: Address; answer: SealedAnswer }[];
  /** Unix milliseconds. */
  expiresAt: number;
}): Promise<void> {
  const { transaction, dialect, answers, expiresAt } = options;
  await dialect.insertMany<LedgerSchema, "answers">(
    transaction,
    "answers",
    answers.map(({ paymentId, payer, answer }) => ({
      payer,
      key_hash: answer.keyHash,
      payment_id: paymentId,
      sealed: answer.sealed,
      expires_at: expiresAt,
    })),
    { keys: ["key_hash", "payer"], replace: ["payment_id", "sealed", "expires_at"] },
  );
}

/** Deletes answers to make room for newer ones of the same payer. */
export async function evictAnswers(options: {
  transaction: Transaction<LedgerSchema>;
  answers: readonly AnswerName[];
}): Promise<void> {
  const { transaction, answers } = options;
  for (const payer of new Set(answers.map((answer) => answer.payer))) {
    const keyHashes = answers.flatMap((answer) => (answer.payer === payer ? answer.keyHash : []));
    await transaction
      .deleteFrom("answers")
      .where("key_hash", "in", keyHashes)
      .where("payer", "=", payer)
      .execute();
  }
}

/**
 * Drops expired answers, and measures the bytes of all answers when a measurement is due.
 *
 * @param options `fromTable`: false where another process deletes them. Default true
 */
export async function dropExpiredAnswers(
  ledger: LedgerContext,
  { fromTable = true }: { fromTable?: boolean } = {},
): Promise<void> {
  const { db, quotas } = ledger;
  const now = ledger.now();
  if (fromTable) {
    const over = await readCommonTime(ledger);
    await ledger.write((transaction) =>
      transaction.deleteFrom("answers").where("expires_at", "<=", over).execute(),
    );
  }
  quotas.dropExpired(now);
  if (quotas.isMeasureDue(now)) quotas.measure(await measureAnswers(db), now);
}

/** Bytes of all kept answers. Full table scan. */
async function measureAnswers(db: Kysely<LedgerSchema>): Promise<number> {
  const { bytes } = await db
    .selectFrom("answers")
    .select(sql<number | string | null>`sum(length(sealed))`.as("bytes"))
    .executeTakeFirstOrThrow();
  return Number(bytes ?? 0);
}
