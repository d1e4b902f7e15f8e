import type { Dialect } from "@coinslot/storage";
import { type RawBuilder, sql, type Transaction } from "kysely";
import { hexOfBytes } from "../store/bytes.ts";
import type { BlockRange } from "../store/coverage.ts";
import { logsPerBlock } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { type Follower, isAnyReverted, readReverted, type ToldRow } from "./told-transfers.ts";

/** Events of one transaction: few enough to delay no other writer. */
export const transfersAtOnce = 1_000;

type TransactionId = Pick<ToldRow, "token_id" | "transaction_hash">;

/**
 * Final blocks that may have been written without announcement: those of a range, or any. A look at
 * any costs a search for each reverted transaction of the last 30 days, `transfersAtOnce` in a
 * transaction: those after `after`.
 */
export type SilentBlocks =
  | {
      tokenIds: readonly number[];
      range: BlockRange;
      /** Transfers of blocks that the write mends. Another block may have had them before. */
      mended?: readonly TransactionId[];
    }
  | { after: TransactionId };

export const anyBlocks: SilentBlocks = {
  after: { token_id: -1, transaction_hash: new Uint8Array() },
};

/** Whether a token's block is final, verified and not doubted. */
export function isFinal(
  chainId: number,
  { tokenId, block }: { tokenId: RawBuilder<unknown>; block: RawBuilder<unknown> },
): RawBuilder<unknown> {
  return sql`${block} <= (
      select finalized_number from indexer_chains where chain_id = ${chainId}
    )
    and ${block} < coalesce(
      (select doubted_from from indexer_checks where chain_id = ${chainId}),
      ${sql.lit(Number.MAX_SAFE_INTEGER)}
    )
    and exists (
      select 1 from indexer_verified_ranges as verified
      where verified.token_id = ${tokenId} and verified.from_block <= ${block}
        and verified.next_block > ${block}
    )`;
}

/**
 * The receivers of reverted transfers that are in a final block, and were not included again: that
 * block was written without announcement, by a reindex or for an added token. `rest`: the blocks to
 * look at once the events of these receivers are written.
 */
export async function findReturned(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, silent }: { chainId: number; silent: SilentBlocks },
): Promise<{ returned: Follower[]; rest: SilentBlocks | undefined }> {
  if (!(await isAnyReverted(transaction))) return { returned: [], rest: undefined };
  const address = dialect.fromHex(sql.ref("reverted.address"));
  const place = {
    tokenId: sql.ref("transfer.token_id"),
    block: sql`(transfer.position / ${sql.lit(logsPerBlock)})`,
  };
  const isReturned = sql`transfer.transaction_hash = reverted.transaction_hash
    and transfer.token_id = reverted.token_id
    and (transfer.from_address = ${address} or transfer.to_address = ${address})
    and not exists (
      select 1 from indexer_told as told where told.token_id = transfer.token_id
        and told.position = transfer.position and told.endpoint_id = reverted.endpoint_id
    )
    and ${isFinal(chainId, place)}`;
  // The offset keeps PostgreSQL from reading a whole table for a join.
  const returnedOf = async (reverted: RawBuilder<unknown>) =>
    (
      await sql<TransactionId>`
        select distinct token_id, transaction_hash from indexer_reverted as reverted
        where ${reverted} and exists (
          select 1 from indexer_transfers as transfer
          where substr(transfer.transaction_hash, 1, 8) = substr(reverted.transaction_hash, 1, 8)
            and ${isReturned}
          limit 1 offset 0
        )
      `.execute(transaction)
    ).rows;
  if ("after" in silent) {
    const { page, bounds } = await readRevertedPage(transaction, chainId, silent.after);
    const found = page.length === 0 ? [] : await returnedOf(bounds);
    const last = page.length < transfersAtOnce ? undefined : page.at(-1);
    const returned = await readReverted(transaction, dialect, found);
    return { returned, rest: last && { after: last } };
  }
  const { tokenIds, range, mended = [] } = silent;
  const { rows: found } = await sql<TransactionId>`
    select distinct token_id, transaction_hash from indexer_transfers as transfer
    where token_id in (${sql.join(tokenIds)})
      and position >= ${range.from * logsPerBlock}
      and position < ${range.next * logsPerBlock}
      and exists (
        select 1 from indexer_reverted as reverted where ${isReturned} limit 1 offset 0
      )
    limit ${sql.lit(transfersAtOnce)}
  `.execute(transaction);
  const isLeft = found.length >= transfersAtOnce;
  if (mended.length > 0) {
    const records = dialect.records(
      "mended",
      { token_id: "integer", hash: "text" },
      mended.map(({ token_id, transaction_hash }) => ({
        token_id,
        hash: hexOfBytes(transaction_hash),
      })),
    );
    const ids = sql`select token_id, ${dialect.fromHex(sql.ref("mended.hash"))} from ${records}`;
    found.push(...(await returnedOf(sql`(token_id, transaction_hash) in (${ids})`)));
  }
  const returned = await readReverted(transaction, dialect, found);
  return { returned, rest: isLeft ? silent : undefined };
}

/** The reverted transactions of a chain after one of them, by their key: a page, and its bounds. */
async function readRevertedPage(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  after: TransactionId,
): Promise<{ page: TransactionId[]; bounds: RawBuilder<unknown> }> {
  const above = sql`
    token_id in (select id from indexer_tokens where chain_id = ${chainId})
    and (token_id, transaction_hash) > (${after.token_id}, ${after.transaction_hash})
  `;
  const { rows: page } = await sql<TransactionId>`
    select token_id, transaction_hash from indexer_reverted where ${above}
    group by token_id, transaction_hash order by token_id, transaction_hash
    limit ${sql.lit(transfersAtOnce)}
  `.execute(transaction);
  const last = page.at(-1) ?? after;
  return {
    page,
    bounds: sql`${above}
      and (token_id, transaction_hash) <= (${last.token_id}, ${last.transaction_hash})`,
  };
}
