import type { RpcPool } from "@coinslot/chain";
import { type Database, isDatabaseError } from "@coinslot/storage";
import { type Address, zeroAddress } from "viem";
import { readTokenBalance } from "../rpc/read-token-balance.ts";
import { bytesOfHex, hexOfBytes } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { wrapUint256 } from "../store/wrap-uint256.ts";
import { BalanceUnavailableError } from "./balance-unavailable-error.ts";

export interface BalanceQuestion {
  token: KnownToken;
  /** In lowercase. */
  address: Address;
}

/**
 * The balance after the newest indexed block. What came and went is in the database; what was there before is zero,
 * or was found before, or is asked of the chain now, twice, once for each address. That of the zero address is asked for every
 * time. Throws a `BalanceUnavailableError`.
 */
export async function readBalance(
  { database, pool }: { database: Database<IndexerSchema>; pool: RpcPool },
  question: BalanceQuestion,
): Promise<bigint> {
  const known = await readKnownBalance(database, question);
  const { token, address } = question;
  // Mints and burns name it, but are no change of what the token keeps there, if it keeps anything.
  const isSum = address !== zeroAddress;
  if (isSum && known.opening !== undefined) return wrapUint256(known.gain + known.opening);
  if (known.block === undefined) {
    throw new BalanceUnavailableError(
      `Nothing of ${token.token} on ${token.blockchain} is indexed yet`,
    );
  }
  const balance = await askChain(pool, question, known.block);
  if (!isSum) return balance;
  // What is kept is kept for good, and a node that is adding a block may answer from the state after it.
  const again = await askChain(pool, question, known.block);
  if (again === balance) {
    const opening = wrapUint256(balance - known.gain);
    await keepOpening(database, { tokenId: token.id, address, opening, revision: known.revision });
  }
  return again;
}

export interface KnownBalance {
  gain: bigint;
  /** Undefined: not known. */
  opening: bigint | undefined;
  /** The newest indexed block, by its hash if it may still be replaced; the gain is that of its end. */
  block: { number: number; hash: string | undefined } | undefined;
  revision: number;
}

/** What the database knows of a balance, all of one moment, since it is one statement. */
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

async function askChain(
  pool: RpcPool,
  { token, address }: BalanceQuestion,
  block: NonNullable<KnownBalance["block"]>,
): Promise<bigint> {
  try {
    return await readTokenBalance(pool, { token: token.address, address, block });
  } catch (cause) {
    throw new BalanceUnavailableError(
      `This balance has to be asked of ${token.blockchain}, which did not tell it for block ${block.number}`,
      { cause },
    );
  }
}

/**
 * Others may find the same opening at the same time: it is the same. The writer may index blocks below the first one
 * meanwhile, which makes the opening smaller, or see them replaced: then the revision has changed, and this one is
 * not kept.
 */
async function keepOpening(
  { transaction, dialect }: Database<IndexerSchema>,
  found: { tokenId: number; address: Address; opening: bigint; revision: number },
): Promise<void> {
  try {
    await transaction(async (tx) => {
      const token = await tx
        .selectFrom("indexer_tokens")
        .select("revision")
        .where("id", "=", found.tokenId)
        .$call(dialect.forUpdate)
        .executeTakeFirst();
      if (token?.revision !== found.revision) return;
      const row = {
        token_id: found.tokenId,
        address: bytesOfHex(found.address),
        amount: dialect.amount.encode(found.opening),
      };
      await dialect.insertMany(tx, "indexer_openings", [row], "ignore");
    });
  } catch (error) {
    // Kept or not, the balance is right; the next who asks will ask the chain again.
    if (!isDatabaseError(error)) throw error;
  }
}
