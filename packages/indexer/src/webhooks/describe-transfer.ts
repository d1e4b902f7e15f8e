import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { Address } from "viem";
import { readTransfer, type TransferRow } from "../query/read-transfer.ts";
import { hexOfBytes } from "../store/bytes.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** A token and its chain, by their names in the configuration. */
export interface ToldToken {
  id: number;
  chainId: number;
  blockchain: string;
  token: string;
  address: Address;
  startBlock: number;
  /** Transfers below this block are new to no receiver. */
  toldFrom: number;
  /** The last final block of its chain. */
  finalTo: number;
}

/** The tokens of some rows, those included that are not configured any more. */
export async function findTokens(
  transaction: Transaction<IndexerSchema>,
  rows: readonly { token_id: number }[],
): Promise<ReadonlyMap<number, ToldToken>> {
  const ids = [...new Set(rows.map(({ token_id }) => token_id))];
  if (ids.length === 0) return new Map();
  const tokens = await transaction
    .selectFrom("indexer_tokens as token")
    .innerJoin("indexer_chains as chain", "chain.chain_id", "token.chain_id")
    .select([
      "token.id",
      "token.chain_id as chainId",
      "chain.name as blockchain",
      "token.name as token",
      "token.address",
      sql<number>`coalesce(chain.told_from, chain.announced_from, 0)`.as("toldFrom"),
      sql<number>`coalesce(chain.finalized_number, -1)`.as("finalTo"),
    ])
    .where("token.id", "in", ids)
    .execute();
  return new Map(
    tokens.map((token) => [
      token.id,
      { ...token, address: hexOfBytes(token.address), startBlock: 0 },
    ]),
  );
}

/** The key of a transfer's events, and the facts that they tell, as JSON. */
export function describeTransfer(
  row: TransferRow,
  {
    token,
    addresses,
    dialect,
  }: {
    token: ToldToken;
    /** Sender, recipient or both: those that the receiver watches. */
    addresses: readonly string[];
    dialect: Dialect;
  },
): { key: string; payload: string } {
  const { chainId, address: asset } = token;
  const transfer = readTransfer(row, { token, dialect });
  const { transactionHash, transferIndex } = transfer;
  return {
    key: `${chainId}:${asset}:${transactionHash}:${transferIndex}`,
    payload: JSON.stringify({
      ...transfer,
      amount: transfer.amount.toString(),
      chainId,
      asset,
      addresses,
    }),
  };
}
