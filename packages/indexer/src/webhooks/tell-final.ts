import { appendEvents, type Database, type Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { outboxTables } from "../store/migrations/add-webhooks.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { WriterLease } from "../store/writer-lease.ts";
import { eventOf } from "./tell-events.ts";
import { deleteTold, finaliseTold, type ToldRow } from "./told-transfers.ts";

/** Events of one transaction: few enough to delay no other writer. */
const transfersAtOnce = 1_000;

/**
 * Runs a write that may raise finality, and posts the events of finality: the first
 * `transfersAtOnce` in its transaction, the rest in further ones. Events that a crash leaves out
 * are posted with the next such write, or at the next writer's start.
 *
 * @throws DatabaseError, LeaseLostError, also where `work` is committed and a further transaction
 * fails
 */
export async function writeAndTell<Result>(
  writing: { chainId: number; database: Database<IndexerSchema>; lease: WriterLease },
  work: (transaction: Transaction<IndexerSchema>) => Promise<Result>,
): Promise<Result> {
  const { chainId, database, lease } = writing;
  const tell = (transaction: Transaction<IndexerSchema>) =>
    tellFinal(transaction, database.dialect, chainId);
  const written = await lease.write(async (transaction) => {
    const result = await work(transaction);
    return { result, isMore: await tell(transaction) };
  });
  let { isMore } = written;
  while (isMore) isMore = await lease.write(tell);
  return written.result;
}

/**
 * Posts one page of events of finality, for transfers whose inclusion was posted. The rule is that
 * of `IndexedTransfer.finalized`. A transfer that its verified block does not have is reverted: a
 * reindex has not found it again.
 *
 * Only the holder of the writer lease calls it.
 *
 * @returns whether there may be more
 */
export async function tellFinal(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  chainId: number,
): Promise<boolean> {
  const rows = await readDecided(transaction, chainId);
  if (rows.length === 0) return false;
  const final = rows.filter(({ is_stored }) => is_stored === 1);
  const gone = rows.filter(({ is_stored }) => is_stored === 0);
  await finaliseTold(transaction, dialect, final);
  await deleteTold(transaction, dialect, gone);
  await appendEvents({ dialect, tables: outboxTables }, transaction, [
    ...final.map((row) => eventOf("transfer.final", row)),
    ...gone.map((row) => eventOf("transfer.reverted", row)),
  ]);
  return rows.length === transfersAtOnce;
}

/** Open rows whose block is final. */
async function readDecided(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
): Promise<(ToldRow & { is_stored: number })[]> {
  const { rows } = await sql<ToldRow & { is_stored: number }>`
    select told.*, case when exists (
      select 1 from indexer_transfers as transfer
      where transfer.token_id = told.token_id and transfer.position = told.position
        and transfer.transaction_hash = told.transaction_hash
    ) and exists (
      select 1 from indexer_blocks as block
      where block.chain_id = told.chain_id and block.number = told.block_number
        and block.hash = told.block_hash
    ) then 1 else 0 end as is_stored
    from indexer_told as told
    where told.chain_id = ${chainId} and told.final_at_ms is null
      and told.block_number <= (
        select finalized_number from indexer_chains where chain_id = ${chainId}
      )
      and told.block_number < coalesce(
        (select doubted_from from indexer_checks where chain_id = ${chainId}),
        ${sql.lit(Number.MAX_SAFE_INTEGER)}
      )
      and exists (
        select 1 from indexer_verified_ranges as verified
        where verified.token_id = told.token_id and verified.from_block <= told.block_number
          and verified.next_block > told.block_number
      )
    order by told.block_number, told.position limit ${sql.lit(transfersAtOnce)}
  `.execute(transaction);
  return rows;
}
