import { appendEvents, type Database, type Dialect, type StoredAmount } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import * as z from "zod";
import { hexOfBytes } from "../store/bytes.ts";
import { outboxTables } from "../store/migrations/add-webhooks.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { WriterLease } from "../store/writer-lease.ts";
import { findTokens } from "./describe-transfer.ts";
import { eventOf, toldOf } from "./tell-events.ts";
import { deleteTold, finaliseTold, insertTold, type ToldRow } from "./told-transfers.ts";
import { findWatchers } from "./watched-addresses.ts";

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
 * reindex has not found it again. One that a reindex has found with other facts is reverted with
 * the earlier facts, and included again.
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
  const isFinal = (row: DecidedRow) => isStored(row) && isAsTold(row, dialect);
  const final = rows.filter(isFinal);
  const gone = rows.filter((row) => !isFinal(row));
  const anew = await describeAnew(transaction, dialect, gone.filter(isStored));
  await finaliseTold(transaction, dialect, final);
  await deleteTold(transaction, dialect, gone);
  await insertTold(transaction, dialect, anew);
  await finaliseTold(transaction, dialect, anew);
  await appendEvents({ dialect, tables: outboxTables }, transaction, [
    ...final.map((row) => eventOf("transfer.final", row)),
    ...gone.map((row) => eventOf("transfer.reverted", row)),
    ...anew.map((row) => eventOf("transfer.included", row)),
    ...anew.map((row) => eventOf("transfer.final", row)),
  ]);
  return rows.length === transfersAtOnce;
}

/** A told transfer, with the transfer of its block in its place: null where there is none. */
type DecidedRow = ToldRow & {
  stored_amount: StoredAmount | null;
  stored_from: Uint8Array;
  stored_to: Uint8Array;
  transaction_index: number;
  transfer_index: number;
  timestamp_ms: number;
};

type StoredRow = DecidedRow & { stored_amount: StoredAmount };

/** Open rows whose block is final. */
async function readDecided(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
): Promise<DecidedRow[]> {
  const { rows } = await sql<DecidedRow>`
    select told.*, block.timestamp_ms, transfer.transaction_index, transfer.transfer_index,
      transfer.from_address as stored_from, transfer.to_address as stored_to,
      case when block.number is null then null else transfer.amount end as stored_amount
    from indexer_told as told
    left join indexer_transfers as transfer on transfer.token_id = told.token_id
      and transfer.position = told.position
      and transfer.transaction_hash = told.transaction_hash
    left join indexer_blocks as block on block.chain_id = told.chain_id
      and block.number = told.block_number and block.hash = told.block_hash
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

function isStored(row: DecidedRow): row is StoredRow {
  return row.stored_amount !== null;
}

const factsSchema = z.object({ from: z.string(), to: z.string(), amount: z.string() });

/** Whether its inclusion was told with the facts that are stored now. */
function isAsTold(
  { payload, stored_from, stored_to, stored_amount }: StoredRow,
  { amount }: Dialect,
): boolean {
  const facts = factsSchema.parse(JSON.parse(payload));
  return (
    facts.amount === `${amount.decode(stored_amount)}` &&
    facts.from === hexOfBytes(stored_from) &&
    facts.to === hexOfBytes(stored_to)
  );
}

/** Rows of the stored facts, for those of their receivers that watch one of both sides. */
async function describeAnew(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly StoredRow[],
): Promise<ToldRow[]> {
  if (rows.length === 0) return [];
  const sides = rows.flatMap((row) => [hexOfBytes(row.stored_from), hexOfBytes(row.stored_to)]);
  const watchers = await findWatchers(transaction, dialect, sides);
  const tokens = await findTokens(transaction, rows);
  return rows.flatMap((row) => {
    const token = tokens.get(row.token_id);
    if (token === undefined) return [];
    const { stored_from, stored_to, stored_amount, endpoint_id, ...facts } = row;
    const stored = {
      ...facts,
      from_address: stored_from,
      to_address: stored_to,
      amount: stored_amount,
    };
    const anew = toldOf(stored, { token, watchers, dialect });
    return anew.filter((each) => each.endpoint_id === endpoint_id);
  });
}
