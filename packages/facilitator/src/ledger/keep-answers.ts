import type { Address, SealedAnswer } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import type { LedgerSchema } from "./ledger-schema.ts";

/**
 * Keeps sealed answers until `expiresAt`. A key that was used before for a payment which came to
 * nothing is given to the new one.
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

/** Forgets the answers whose time is over. */
export async function dropExpiredAnswers(options: {
  transaction: Transaction<LedgerSchema>;
  /** Unix milliseconds. */
  now: number;
}): Promise<void> {
  await options.transaction.deleteFrom("answers").where("expires_at", "<=", options.now).execute();
}
