import { appendEvents, type Database, type Dialect, type StoredAmount } from "@coinslot/storage";
import { type RawBuilder, sql, type Transaction } from "kysely";
import * as z from "zod";
import { hexOfBytes } from "../store/bytes.ts";
import type { BlockRange } from "../store/coverage.ts";
import { outboxTables } from "../store/migrations/add-webhooks.ts";
import { logsPerBlock } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { WriterLease } from "../store/writer-lease.ts";
import {
  anyBlocks,
  findReturned,
  isFinal,
  type SilentBlocks,
  transfersAtOnce,
} from "./find-returned.ts";
import { findUntold } from "./find-untold.ts";
import { eventOf } from "./tell-events.ts";
import {
  deleteTold,
  finaliseTold,
  followersOf,
  insertReverted,
  insertTold,
  openTold,
  type ToldRow,
} from "./told-transfers.ts";

/** What is left to be told: pages, and blocks to look at. */
interface Rest {
  silent: SilentBlocks | undefined;
}

/** The chains of a writer whose last look at silent blocks has failed. */
const owedLooks = new WeakMap<WriterLease, Set<number>>();

/**
 * Runs a write that may raise finality, and posts the events of finality: the first
 * `transfersAtOnce` in its transaction, the rest in further ones. Events that a crash leaves out
 * are posted with the next such write, or at the next writer's start. `silent`: blocks that the
 * write makes final, and that were not announced; none: there are none.
 *
 * @throws DatabaseError, LeaseLostError, also where `work` is committed and a further transaction
 * fails
 */
export async function writeAndTell<Result>(
  writing: {
    chainId: number;
    database: Database<IndexerSchema>;
    lease: WriterLease;
    silent?: SilentBlocks;
  },
  work: (transaction: Transaction<IndexerSchema>) => Promise<Result>,
): Promise<Result> {
  const { chainId, database, lease, silent } = writing;
  const owed = owedLooks.get(lease) ?? new Set();
  owedLooks.set(lease, owed);
  let isOwed = owed.delete(chainId);
  const tell = (transaction: Transaction<IndexerSchema>, rest: Rest) =>
    tellFinal(transaction, database.dialect, { chainId, ...rest });
  try {
    const written = await lease.write(async (transaction) => {
      const result = await work(transaction);
      return { result, rest: await tell(transaction, { silent: isOwed ? anyBlocks : silent }) };
    });
    // The write is not done once more: after a failure nobody would look at its blocks.
    isOwed ||= silent !== undefined;
    for (let { rest } = written; rest !== undefined; ) {
      const left = rest;
      rest = await lease.write((transaction) => tell(transaction, left));
    }
    return written.result;
  } catch (error) {
    if (isOwed) owed.add(chainId);
    throw error;
  }
}

/**
 * Posts one page of events of finality, for transfers whose inclusion was posted. The rule is that
 * of `IndexedTransfer.finalized`. A transfer that its verified block does not have is reverted: a
 * reindex has not found it again. Where it has found other transfers in the same transaction, these
 * are included, and are final by a later page. So are reverted ones that a later reindex has found.
 *
 * Only the holder of the writer lease calls it.
 *
 * @returns what may be left; undefined: nothing
 */
export async function tellFinal(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, silent }: { chainId: number; silent?: SilentBlocks | undefined },
): Promise<Rest | undefined> {
  const rows = await readPage(transaction, dialect, chainId);
  const isFull = rows.length >= transfersAtOnce;
  // The rows of a later page may have the keys of transfers that are included anew.
  const { returned, rest } =
    isFull || silent === undefined
      ? { returned: [], rest: silent }
      : await findReturned(transaction, dialect, { chainId, silent });
  const next = isFull || rest !== silent ? rest : undefined;
  if (rows.length === 0 && returned.length === 0) return next && { silent: next };
  const final = rows.filter((row) => isAsTold(row, dialect));
  const gone = rows.filter((row) => !isAsTold(row, dialect));
  await finaliseTold(transaction, dialect, final);
  await deleteTold(transaction, dialect, gone);
  await insertReverted(transaction, dialect, gone);
  const followers = [...followersOf(gone), ...returned];
  const anew = await findUntold(transaction, dialect, { chainId, followers });
  await insertTold(transaction, dialect, anew);
  await appendEvents({ dialect, tables: outboxTables }, transaction, [
    ...final.map((row) => eventOf("transfer.final", row)),
    ...gone.map((row) => eventOf("transfer.reverted", row)),
    ...anew.map((row) => eventOf("transfer.included", row)),
  ]);
  const isMore = isFull || anew.length > 0 || next !== undefined;
  return isMore ? { silent: rest } : undefined;
}

/**
 * Opens transfers again that were told as final, and that their range, as it is verified now, does
 * not have. `tellFinal` reverts them.
 */
export async function reopenTold(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenIds, range }: { tokenIds: readonly number[]; range: BlockRange },
): Promise<void> {
  const rows = await selectTold(
    transaction,
    sql`told.token_id in (${sql.join(tokenIds)}) and told.final_at_ms is not null
      and told.position >= ${range.from * logsPerBlock}
      and told.position < ${range.next * logsPerBlock}`,
  );
  const gone = rows.filter((row) => !isAsTold(row, dialect));
  await openTold(transaction, dialect, gone);
}

/** A told transfer, with the transfer of its block in its place: null where there is none. */
type PlacedRow = ToldRow & {
  stored_amount: StoredAmount | null;
  stored_from: Uint8Array;
  stored_to: Uint8Array;
  stored_index: number;
};

/**
 * A page of open rows whose block is final. Transfers that are gone come with all others of their
 * transaction and block: one may have the index, so the key, of another one that is included anew.
 */
async function readPage(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  chainId: number,
): Promise<PlacedRow[]> {
  const decided = decidedOf(chainId);
  const page = await selectTold(
    transaction,
    sql`${decided} order by told.block_number, told.position, told.token_id, told.endpoint_id
      limit ${sql.lit(transfersAtOnce)}`,
  );
  const last = page.at(-1);
  if (last === undefined || page.length < transfersAtOnce) return page;
  const torn = page.filter(
    (row) => row.block_number === last.block_number && !isAsTold(row, dialect),
  );
  if (torn.length === 0) return page;
  const hashes = torn.map((row) => row.transaction_hash);
  const rest = await selectTold(
    transaction,
    sql`${decided} and told.block_number = ${last.block_number}
      and (told.position, told.token_id, told.endpoint_id)
        > (${last.position}, ${last.token_id}, ${last.endpoint_id})
      and told.transaction_hash in (${sql.join(hashes)})`,
  );
  return [...page, ...rest];
}

/** Open rows whose block is final. */
function decidedOf(chainId: number): RawBuilder<unknown> {
  const place = { tokenId: sql.ref("told.token_id"), block: sql.ref("told.block_number") };
  return sql`told.chain_id = ${chainId} and told.final_at_ms is null
    and ${isFinal(chainId, place)}`;
}

async function selectTold(
  transaction: Transaction<IndexerSchema>,
  condition: RawBuilder<unknown>,
): Promise<PlacedRow[]> {
  const { rows } = await sql<PlacedRow>`
    select told.*, transfer.from_address as stored_from, transfer.to_address as stored_to,
      transfer.transfer_index as stored_index,
      case when block.number is null then null else transfer.amount end as stored_amount
    from indexer_told as told
    left join indexer_transfers as transfer on transfer.token_id = told.token_id
      and transfer.position = told.position
      and transfer.transaction_hash = told.transaction_hash
    left join indexer_blocks as block on block.chain_id = told.chain_id
      and block.number = told.block_number and block.hash = told.block_hash
    where ${condition}
  `.execute(transaction);
  return rows;
}

const factsSchema = z.object({
  from: z.string(),
  to: z.string(),
  amount: z.string(),
  transferIndex: z.number(),
});

/** Whether it is stored with the facts of its inclusion. */
function isAsTold(
  { payload, stored_from, stored_to, stored_amount, stored_index }: PlacedRow,
  { amount }: Dialect,
): boolean {
  if (stored_amount === null) return false;
  const facts = factsSchema.parse(JSON.parse(payload));
  return (
    facts.amount === `${amount.decode(stored_amount)}` &&
    facts.from === hexOfBytes(stored_from) &&
    facts.to === hexOfBytes(stored_to) &&
    facts.transferIndex === Number(stored_index)
  );
}
