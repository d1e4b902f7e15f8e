import { authorizationKey, type ReservationRequest, type SealedAnswer } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import { keysOf } from "../payments/key-owners.ts";
import { identityColumns, toAuthorizationId } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";

const identity = identityColumns.map((column) => `payments.${column}` as const);

/** Kept answers for the requests' keys, each scoped to its authorization. */
export async function findAnswers<
  Request extends Pick<ReservationRequest, "id" | "keyHash">,
>(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  requests: readonly Request[];
  /** Unix milliseconds. */
  now: number;
}): Promise<Map<Request, SealedAnswer>> {
  const { db, dialect, requests, now } = options;
  const keys = keysOf(requests);
  if (keys.length === 0) return new Map();
  const rows = await db
    .selectFrom(dialect.rowsWith(db, "answers", keys))
    .innerJoin("payments", "payments.id", "answers.payment_id")
    .select(["answers.key_hash", "answers.sealed", ...identity])
    .where("expires_at", ">", now)
    .execute();
  const found = new Map<Request, SealedAnswer>();
  for (const request of requests) {
    const row = rows.find(
      (row) =>
        row.key_hash === request.keyHash &&
        authorizationKey(toAuthorizationId(row)) === authorizationKey(request.id),
    );
    if (row) found.set(request, { keyHash: row.key_hash, sealed: row.sealed });
  }
  return found;
}
