import { authorizationKey, type ReservationRequest } from "@coinslot/protocol";
import type { Kysely } from "kysely";
import { type LedgerSchema, openStates } from "../schema.ts";
import { is } from "../states.ts";
import { identityColumns, toAuthorizationId } from "./ledger-payment.ts";

/**
 * Which payment a buyer's key belongs to: `payer/keyHash` → `authorizationKey`. A key belongs to an
 * open payment, and to a confirmed one while its answer may be kept. Then it is free again.
 */
export async function findKeyOwners(options: {
  db: Kysely<LedgerSchema>;
  requests: readonly ReservationRequest[];
  now: number;
  keepAnswersMs: number;
}): Promise<Map<string, string>> {
  const { db, requests, now, keepAnswersMs } = options;
  const keyHashes = requests.flatMap(({ keyHash }) => keyHash ?? []);
  if (keyHashes.length === 0) return new Map();
  const rows = await db
    .selectFrom("payments")
    .select([...identityColumns, "key_hash"])
    .where("key_hash", "in", keyHashes)
    .where((where) =>
      where.or([
        where("state", "in", openStates),
        where.and([
          where("state", "=", is("confirmed")),
          where("confirmed_at", ">", now - keepAnswersMs),
        ]),
      ]),
    )
    .execute();
  return new Map(
    rows.map((row) => [`${row.payer}/${row.key_hash}`, authorizationKey(toAuthorizationId(row))]),
  );
}
