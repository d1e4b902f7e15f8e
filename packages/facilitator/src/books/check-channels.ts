import type { Hex } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import { sql } from "kysely";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { type ComparedRows, type EntriesBySource, readEntriesOf } from "./check-page.ts";

/**
 * Compares channels with the books: what each owes the seller, what the escrow holds of it, and
 * what was lost of it. Page by page in the order of their ids, each page as of one moment.
 */
export async function* checkChannels(
  reads: LedgerReads,
  limit: number,
): AsyncGenerator<ComparedRows, void, void> {
  let after = "";
  for (;;) {
    const from = after;
    const page = await inSnapshot(reads, async (snapshot) => {
      const channels = await readChannels(snapshot, { after: from, limit });
      const ids = channels.map(({ channel_id }) => channel_id);
      const entries = await readEntriesOf(snapshot, ids);
      return { channels, entries, charges: await readCharges(snapshot, ids) };
    });
    yield {
      count: page.channels.length,
      faults: page.channels.flatMap((channel) => {
        if (isBalanced(reads, channel, page)) return [];
        const { channel_id: sourceId, network } = channel;
        return [{ fault: "wrong_balance" as const, sourceId, network, transaction: undefined }];
      }),
      transfers: [],
    };
    const last = page.channels.at(-1);
    if (last === undefined || page.channels.length < limit) return;
    after = last.channel_id;
  }
}

function readChannels({ db }: LedgerReads, { after, limit }: { after: string; limit: number }) {
  return db
    .selectFrom("channel_terms")
    .innerJoin("channels", (join) =>
      join
        .onRef("channels.network", "=", "channel_terms.network")
        .onRef("channels.contract", "=", "channel_terms.contract")
        .onRef("channels.channel_id", "=", "channel_terms.channel_id"),
    )
    .leftJoin("channel_states", (join) =>
      join
        .onRef("channel_states.network", "=", "channel_terms.network")
        .onRef("channel_states.contract", "=", "channel_terms.contract")
        .onRef("channel_states.channel_id", "=", "channel_terms.channel_id"),
    )
    .select(["channel_terms.channel_id", "channel_terms.network", "channel_terms.token"])
    .select(["channels.charged", "channels.lost"])
    .select(["channel_states.balance", "channel_states.claimed"])
    .where("channel_terms.channel_id", ">", sql<`0x${string}`>`${after}`)
    .orderBy("channel_terms.channel_id")
    .limit(limit)
    .execute();
}

type CheckedChannel = Awaited<ReturnType<typeof readChannels>>[number];

/** Charged by the books, less what was taken back, by the channel. */
async function readCharges(
  { db, dialect }: LedgerReads,
  ids: readonly Hex[],
): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>();
  if (ids.length === 0) return sums;
  const rows = await db
    .selectFrom("channel_sums")
    .innerJoin("channel_terms", (join) =>
      join
        .onRef("channel_terms.network", "=", "channel_sums.network")
        .onRef("channel_terms.contract", "=", "channel_sums.contract")
        .onRef("channel_terms.channel_id", "=", "channel_sums.channel_id"),
    )
    .select(["channel_sums.channel_id", "channel_sums.is_reversal", "channel_sums.amount"])
    .where("channel_terms.channel_id", "in", dialect.among(ids))
    .execute();
  for (const { channel_id, is_reversal, amount } of rows) {
    const value = dialect.amount.decode(amount);
    sums.set(channel_id, (sums.get(channel_id) ?? 0n) + (is_reversal === 1 ? -value : value));
  }
  return sums;
}

const { receivable, locked, losses, escrow } = accounts;
/** The accounts of a channel's entries; `claimed` and `receivable` are between them. */
const known = new Set<number>([receivable, locked, losses, escrow, accounts.claimed]);

function isBalanced(
  { dialect: { amount } }: LedgerReads,
  { channel_id, network, token, ...row }: CheckedChannel,
  { entries, charges }: { entries: EntriesBySource; charges: ReadonlyMap<string, bigint> },
): boolean {
  const own = entries.get(channel_id) ?? [];
  const isOwn = own.every(
    (entry) =>
      entry.network === network &&
      entry.asset === token &&
      known.has(entry.debit) &&
      known.has(entry.credit),
  );
  const balanceOf = (account: number) =>
    own.reduce((sum, { debit, credit, amount: value }) => {
      return sum + (debit === account ? value : 0n) - (credit === account ? value : 0n);
    }, 0n);
  const decode = (value: StoredAmount | null) =>
    value === null ? undefined : amount.decode(value);
  const [charged, lost] = [amount.decode(row.charged), amount.decode(row.lost)];
  // A channel that was never read from the chain is charged nothing.
  const claimed = decode(row.claimed) ?? charged;
  const held = (decode(row.balance) ?? claimed) - claimed;
  return (
    isOwn &&
    (charges.get(channel_id) ?? 0n) + balanceOf(receivable) === charged - claimed - lost &&
    balanceOf(locked) === held &&
    balanceOf(losses) === lost
  );
}
