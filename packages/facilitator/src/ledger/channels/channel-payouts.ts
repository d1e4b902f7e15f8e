import type { Address, Hex } from "@coinslot/protocol";
import { sql } from "kysely";
import { accounts } from "../books-schema.ts";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import { findNames, rememberSoldNames } from "../payments/sold-names.ts";
import { createSortableId } from "../sortable-id.ts";
import type { ChannelContract } from "./channel-state.ts";
import { postingTime } from "./post-charges.ts";

/** Claimed money that a contract has sent to its receiver: a `Settled` event, of any sender. */
export interface Payout {
  receiver: Address;
  token: Address;
  amount: bigint;
  transaction: Hex;
  logIndex: number;
  block: { number: number; hash: Hex };
}

/** The last block whose payouts are posted; `undefined` before the first look. */
export async function readPayoutProgress(
  { db }: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("channel_payout_progress")
    .select("block_number")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .executeTakeFirst();
  return row?.block_number;
}

/** Begins with the block after this one, unless it has begun. */
export async function beginPayouts(
  ledger: LedgerContext,
  { network, contract, block }: ChannelContract & { block: number },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .insertInto("channel_payout_progress")
        .values({ network, contract, block_number: block })
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    forProcess,
  );
}

/**
 * Sets the progress back from a block that the chain may not have come to. It becomes that of the
 * last payout that was posted within some blocks, or `lowest` without one. None is posted twice by
 * that.
 *
 * The racer is another process that has done so, or has posted: the progress is no longer `done`.
 *
 * @returns the block to go on after
 */
export async function rewindPayouts(
  ledger: LedgerContext,
  options: ChannelContract & {
    done: number;
    posted: { since?: number; upTo: number };
    lowest: number;
  },
): Promise<number> {
  const { network, contract, done, posted, lowest } = options;
  return ledger.write(async (transaction) => {
    const last = await transaction
      .selectFrom("channel_payouts")
      .select("block_number")
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("block_number", ">=", posted.since ?? 0)
      .where("block_number", "<=", posted.upTo)
      .orderBy("block_number", "desc")
      .limit(1)
      .executeTakeFirst();
    const block = last?.block_number ?? lowest;
    await transaction
      .updateTable("channel_payout_progress")
      .set({ block_number: block })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("block_number", "=", done)
      .execute();
    return block;
  }, forProcess);
}

const { wallet, claimed } = accounts;

/**
 * Posts the payouts of some final blocks, with the last of these blocks. Their rows and entries are
 * in one database transaction with the progress, so a crash posts none twice.
 *
 * The racer is another process that has read the same blocks: the progress is no longer at `after`.
 *
 * @param options.after the last block before them
 * @returns false where another process was first: nothing was posted
 */
export async function postPayouts(
  ledger: LedgerContext,
  options: ChannelContract & { after: number; to: number; payouts: readonly Payout[] },
): Promise<boolean> {
  const { dialect } = ledger;
  const { network, contract, after, to, payouts } = options;
  const names = await ledger.write(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("channel_payout_progress")
      .set({ block_number: to })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("block_number", "=", after)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return undefined;
    const found = await findNames({
      ...{ transaction, dialect, known: ledger.soldNames, now: ledger.now() },
      names: payouts.map(({ receiver }) => receiver),
    });
    for (const { receiver, token, transaction: hash, logIndex, block, ...payout } of payouts) {
      const id = createSortableId(ledger.now());
      const amount = dialect.amount.encode(payout.amount);
      const row = { network, contract, receiver, token, amount, transaction_hash: hash };
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto("channel_payouts")
        .values({
          ...{ ...row, id, log_index: logIndex },
          ...{ block_number: block.number, block_hash: block.hash },
        })
        .onConflict((conflict) =>
          conflict.columns(["network", "transaction_hash", "log_index"]).doNothing(),
        )
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 0n) continue;
      await sql`
        insert into book_entries (posted_at, route_id, pay_to_id, debit, credit, source_id, amount,
          network, asset)
        values (${postingTime(ledger, transaction)}, null, ${found.get(receiver)?.id ?? null},
          ${wallet}, ${claimed}, ${id}, ${amount}, ${network}, ${token})
      `.execute(transaction);
    }
    return found;
  }, forProcess);
  if (names !== undefined) rememberSoldNames(ledger.soldNames, names);
  return names !== undefined;
}
