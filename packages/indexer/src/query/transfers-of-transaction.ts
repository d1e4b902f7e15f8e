import type { Database } from "@coinslot/storage";
import { sql } from "kysely";
import type { Hash } from "viem";
import { bytesOfHex } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { IndexedTransfer } from "../transfer.ts";
import { readIndexedTransfer, selectIndexedTransfers } from "./indexed-transfers.ts";

/**
 * The transfers of a token in one transaction, in the order of their events; empty where there are
 * none.
 */
export async function transfersOfTransaction(
  database: Database<IndexerSchema>,
  token: KnownToken,
  transactionHash: Hash,
): Promise<IndexedTransfer[]> {
  const hash = bytesOfHex(transactionHash);
  const rows = await selectIndexedTransfers(database, token)
    .where(sql<boolean>`substr(transfer.transaction_hash, 1, 8) = ${hash.subarray(0, 8)}`)
    .where("transfer.transaction_hash", "=", hash)
    .orderBy("transfer.position")
    .execute();
  return rows.map((row) => readIndexedTransfer(row, { token, dialect: database.dialect }));
}
