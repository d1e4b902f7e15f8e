import { type Address, authorizationKey, type ReservationRequest } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely } from "kysely";
import { type LedgerSchema, openStates } from "../schema.ts";
import { is } from "../states.ts";
import { identityColumns, toAuthorizationId } from "./ledger-payment.ts";

/**
 * The payment of each buyer's key: `payer/keyHash` → `authorizationKey`. A key belongs to an open
 * payment, and to a confirmed one while its answer may be kept. Then it is free again.
 */
export async function findKeyOwners(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReservationRequest[];
  now: number;
  keepAnswersMs: number;
}): Promise<Map<string, string>> {
  const { db, dialect, requests, now, keepAnswersMs } = options;
  const keys = keysOf(requests);
  if (keys.length === 0) return new Map();
  const rows = await db
    .selectFrom(dialect.rowsWith(db, "payments", keys))
    .select([...identityColumns, "key_hash"])
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

/** The keys of these requests. A key is one payer's. */
export function keysOf(
  requests: readonly Pick<ReservationRequest, "id" | "keyHash">[],
): { key_hash: string; payer: Address }[] {
  return requests.flatMap(({ id, keyHash }) =>
    keyHash === undefined ? [] : { key_hash: keyHash, payer: id.payer },
  );
}
