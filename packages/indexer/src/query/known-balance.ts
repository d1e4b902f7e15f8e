import type { Database } from "@coinslot/storage";
import type { Address } from "viem";
import { bytesOfHex, hexOfBytes } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { BalanceUnavailableError } from "./balance-unavailable-error.ts";

export interface BalanceQuestion {
  token: KnownToken;
  /** In lowercase. */
  address: Address;
}

export interface KnownBalance {
  gain: bigint;
  /** Undefined: not known. */
  opening: bigint | undefined;
  /**
   * The newest indexed block, by its hash if it may still be replaced; the gain is that of its end.
   */
  block: { number: number; hash: string | undefined } | undefined;
  revision: number;
}

/** The database's knowledge of a balance, all of one moment, since it is one statement. */
export async function readKnownBalance(
  { kysely, dialect }: Database<IndexerSchema>,
  { token, address }: BalanceQuestion,
): Promise<KnownBalance> {
  const bytes = bytesOfHex(address);
  const rows = await kysely
    .selectFrom("indexer_tokens as token")
    .leftJoin("indexer_balances as balance", (join) =>
      join.onRef("balance.token_id", "=", "token.id").on("balance.address", "=", bytes),
    )
    .leftJoin("indexer_openings as opening", (join) =>
      join.onRef("opening.token_id", "=", "token.id").on("opening.address", "=", bytes),
    )
    .leftJoin("indexer_ranges as range", "range.token_id", "token.id")
    .leftJoin("indexer_window as window", (join) =>
      join
        .onRef("window.chain_id", "=", "token.chain_id")
        .onRef("range.next_block", "=", (from) => from("window.number", "+", 1)),
    )
    .where("token.id", "=", token.id)
    .orderBy("range.from_block", "desc")
    .select([
      "token.opens_at_zero",
      "token.revision",
      "balance.amount as gain",
      "opening.amount as opening",
      "range.from_block",
      "range.next_block",
      "window.hash",
    ])
    .execute();
  const [top] = rows;
  if (top === undefined) throw new BalanceUnavailableError("The token is not in the database yet");
  const isFromTheStart =
    rows.length === 1 && top.from_block !== null && top.from_block <= token.startBlock;
  const opensAtZero = top.opens_at_zero === 1 && isFromTheStart;
  const known = top.opening === null ? undefined : dialect.amount.decode(top.opening);
  return {
    gain: top.gain === null ? 0n : dialect.amount.decode(top.gain),
    opening: opensAtZero ? 0n : known,
    block:
      top.next_block === null
        ? undefined
        : { number: top.next_block - 1, hash: top.hash ? hexOfBytes(top.hash) : undefined },
    revision: top.revision,
  };
}
