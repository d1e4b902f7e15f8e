import { type Database, isDatabaseError } from "@coinslot/storage";
import { type Address, zeroAddress } from "viem";
import { readTokenBalance, readTokenBalances } from "../rpc/read-token-balance.ts";
import { bytesOfHex } from "../store/bytes.ts";
import { findKnownBlock } from "../store/marks.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { findWindowBlock } from "../store/window.ts";
import { wrapUint256 } from "../store/wrap-uint256.ts";
import type { TrustedPool } from "../trusted-pool.ts";
import type { AskedBalance, AskedBalances } from "./asked-balances.ts";
import { BalanceUnavailableError } from "./balance-unavailable-error.ts";
import { findAnchor } from "./find-anchor.ts";
import { type BalanceQuestion, readKnownBalance } from "./known-balance.ts";

interface BalanceContext {
  database: Database<IndexerSchema>;
  pool: TrustedPool;
  asked: AskedBalances;
}

/**
 * The balance after the newest indexed block. Gains and losses since the first indexed block are in
 * the database. The opening, which was there before, is zero, or was found before, or is asked of
 * the chain now. The balance of the zero address is asked for every time. Throws a
 * `BalanceUnavailableError`.
 *
 * An opening is kept for good. A node that is adding a block may answer for the newest one with the
 * state after it. So an answer for the newest block is only returned. A later question finds that
 * block not the newest any more. It asks the chain for it once more, and keeps the opening that
 * follows.
 */
export async function readBalance(
  context: BalanceContext,
  question: BalanceQuestion,
): Promise<bigint> {
  const { database, asked } = context;
  const known = await readKnownBalance(database, question);
  const { gain, block, revision } = known;
  const { token, address } = question;
  // Mints and burns name the zero address, but do not change the balance that the token keeps
  // there, if any.
  const isSum = address !== zeroAddress;
  if (isSum && known.opening !== undefined) return wrapUint256(gain + known.opening);
  if (block === undefined) {
    throw new BalanceUnavailableError(
      `Nothing of ${token.token} on ${token.blockchain} is indexed yet`,
    );
  }
  if (!isSum) return askChain(context, question, block);
  const before = asked.takeOlder(question, known);
  if (before !== undefined && !(await isReplaced(database, token.chainId, before.block))) {
    const opening = await findOpening(context, question, before);
    if (opening !== undefined) {
      await keepOpening(database, { tokenId: token.id, address, opening, revision });
      return wrapUint256(gain + opening);
    }
  }
  const balance = await askChain(context, question, block);
  asked.note(question, { ...known, block });
  return balance;
}

/**
 * Resolves to whether the index has another block in its place. No endpoint has it any more, and
 * the pool would ask all of them until its deadline.
 */
async function isReplaced(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  chainId: number,
  { number, hash }: AskedBalance["block"],
): Promise<boolean> {
  if (hash === undefined) return false;
  const inWindow = await findWindowBlock(kysely, { chainId, number });
  // Below the window, only marks and blocks with transfers are known.
  const known = inWindow ?? (await findKnownBlock(kysely, { chainId, number }));
  return known?.number === number && known.hash !== hash;
}

/**
 * Undefined where the chain has no answer: the block was replaced, or its state is not kept any
 * more. Undefined also where endpoints differ, or one of several answers alone: a false opening
 * would be kept.
 */
async function findOpening(
  context: BalanceContext,
  question: BalanceQuestion,
  { block, gain }: AskedBalance,
): Promise<bigint | undefined> {
  try {
    const balances = await askEach(context, question, block);
    const [balance] = balances;
    const isShared = balances.length >= Math.min(2, context.pool.endpoints.length);
    if (balance === undefined || !isShared || balances.some((other) => other !== balance))
      return undefined;
    return wrapUint256(balance - gain);
  } catch (error) {
    if (error instanceof BalanceUnavailableError) return undefined;
    throw error;
  }
}

function askChain(
  context: BalanceContext,
  question: BalanceQuestion,
  block: Asked["block"],
): Promise<bigint> {
  return askBy(context, question, block, (asked) => readTokenBalance(context.pool, asked));
}

/** The balance by each endpoint that returns it. */
function askEach(
  context: BalanceContext,
  question: BalanceQuestion,
  block: Asked["block"],
): Promise<bigint[]> {
  return askBy(context, question, block, (asked) => readTokenBalances(context.pool, asked));
}

type Asked = Parameters<typeof readTokenBalance>[1];

async function askBy<Answer>(
  { database }: BalanceContext,
  { token, address }: BalanceQuestion,
  block: Asked["block"],
  read: (asked: Asked) => Promise<Answer>,
): Promise<Answer> {
  const anchor = await findAnchor(database, token.chainId, block);
  if (anchor === undefined)
    throw new BalanceUnavailableError(
      `No block of ${token.blockchain} that a node could be held against is indexed yet`,
    );
  try {
    return await read({ token: token.address, address, block, anchor });
  } catch (cause) {
    throw new BalanceUnavailableError(
      `This balance comes from ${token.blockchain}, which did not return it for block ${block.number}`,
      { cause },
    );
  }
}

/**
 * Others may find the same opening at the same time: it is the same. The writer may index blocks
 * below the first one meanwhile, which makes the opening smaller, or see them replaced. Then the
 * revision has changed, and this opening is not kept (optimistic concurrency).
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
    // Kept or not, the balance is right; the next question asks the chain again.
    if (!isDatabaseError(error)) throw error;
  }
}
