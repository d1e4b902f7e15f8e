import { sql, type Transaction } from "kysely";
import { accounts } from "../books-schema.ts";
import type { LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";
import { postingTime } from "./post-charges.ts";

/** The chain's part of a channel, as the books have it. Amounts in the token's smallest unit. */
export interface BookedChannel {
  /** At the escrow, without what is claimed. */
  locked: bigint;
  claimed: bigint;
  lost: bigint;
}

const { locked, escrow, claimed, receivable, losses } = accounts;

/** Accounts of each part: the debited one, and the credited one. A fall posts the reverse. */
const pairs = {
  locked: [locked, escrow],
  claimed: [claimed, receivable],
  lost: [losses, receivable],
} as const;

/**
 * Posts the change of a channel on the chain, in the transaction that writes its mirror: one entry
 * for each part that has changed. A reorganisation that takes a change back posts the reverse.
 *
 * The channel's row must be locked by the transaction, so no other one posts from the same state.
 */
export async function postMirror(
  ledger: Pick<LedgerContext, "dialect">,
  transaction: Transaction<LedgerSchema>,
  change: ChannelKey & { before: BookedChannel; after: BookedChannel; blockNumber: number },
): Promise<void> {
  const { before, after, blockNumber, channelId, network } = change;
  const { encode } = ledger.dialect.amount;
  for (const part of ["locked", "claimed", "lost"] as const) {
    const rise = after[part] - before[part];
    if (rise === 0n) continue;
    const [debit, credit] = rise > 0n ? pairs[part] : [pairs[part][1], pairs[part][0]];
    const key = keyColumns(change);
    await sql`
      insert into book_entries (posted_at, route_id, pay_to_id, debit, credit, source_id, amount,
        network, asset, block_number)
      select ${postingTime(ledger, transaction)}, null, null, cast(${debit} as smallint),
        cast(${credit} as smallint), ${channelId}, ${encode(rise > 0n ? rise : -rise)}, ${network},
        token, cast(${blockNumber} as bigint)
      from channel_terms where network = ${key.network} and contract = ${key.contract}
        and channel_id = ${key.channel_id}
    `.execute(transaction);
  }
}
