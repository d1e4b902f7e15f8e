import type { Hex, Network } from "@coinslot/protocol";
import { sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { type Channel, type ChannelKey, toChannel, toChannelConfig } from "./channel.ts";
import { toChannelState } from "./channel-state.ts";
import { toRefusal } from "./claim-refusals.ts";
import type { ClaimableChannel } from "./claimable.ts";

/** A channel with its terms, and the chain's side of it. */
export interface KnownChannel extends Omit<ClaimableChannel, "since"> {
  /** The first charge after the last claim; `undefined` without unclaimed money. */
  since: number | undefined;
  /** When it was first seen. */
  createdAt: number;
}

/** Selection of channels. `withdrawing`: with unclaimed money, and a withdrawal that waits. */
type ChannelSelection = "all" | "unclaimed" | "withdrawing" | "lost";

interface ChannelFilter {
  selection: ChannelSelection;
  network?: Network | undefined;
  /** The last one of the page before. */
  after?: ChannelKey | undefined;
  limit: number;
}

const duesPage = 500;

/**
 * A page of channels in the order of their keys, which is that of the index. Those of `lost` have
 * an index of their own.
 */
export async function findChannels(
  reads: LedgerReads,
  options: ChannelFilter,
): Promise<KnownChannel[]> {
  if (options.selection === "unclaimed" || options.selection === "withdrawing") {
    return findDue(reads, options);
  }
  return readChannels(reads, await findKeys(reads, options));
}

/** By the channels with unclaimed money, which are few beside the idle ones. */
async function findDue(
  reads: LedgerReads,
  { limit, selection, ...options }: ChannelFilter,
): Promise<KnownChannel[]> {
  const found: KnownChannel[] = [];
  for (let { after } = options; found.length < limit; ) {
    const due = { ...options, selection: "unclaimed", after, limit: duesPage } as const;
    const keys = await findKeys(reads, due);
    const page = await readChannels(reads, keys);
    for (const each of page) {
      const { channel, state } = each;
      // Money that is claimed at the head stays due until it is final.
      const isUnclaimed = channel.charged > (state?.totalClaimed ?? 0n);
      const isWanted = selection === "unclaimed" || state?.withdrawal !== undefined;
      if (isUnclaimed && isWanted) found.push(each);
    }
    after = keys.at(-1);
    if (keys.length < duesPage) break;
  }
  return found.slice(0, limit);
}

/** Keys of a page: all of it is in the index. */
async function findKeys({ db, dialect }: LedgerReads, options: ChannelFilter) {
  const { selection, network, after, limit } = options;
  const table = selection === "unclaimed" ? sql`channel_dues` : sql`channels`;
  const from = after ?? (network && { network, contract: "", channelId: "" });
  const conditions = [sql`1 = 1`];
  if (from !== undefined) {
    const { contract, channelId } = from;
    conditions.push(
      sql`(network, contract, channel_id) > (${from.network}, ${contract}, ${channelId})`,
    );
  }
  // As an upper bound of the keys: by an equality, PostgreSQL without statistics expects few rows,
  // reads all of the network and sorts them.
  if (network !== undefined) conditions.push(sql`network <= ${network}`);
  // As in the index's own condition.
  if (selection === "lost") conditions.push(sql`lost > ${sql.lit(dialect.amount.encode(0n))}`);
  const { rows } = await sql<{ network: Network; contract: Hex; channel_id: Hex }>`
    select network, contract, channel_id from ${table}
    where ${sql.join(conditions, sql` and `)}
    order by network, contract, channel_id limit ${sql.lit(limit)}
  `.execute(db);
  return rows.map((row): ChannelKey => {
    const { channel_id: channelId, ...place } = row;
    return { ...place, channelId };
  });
}

/** Channels whose id begins with these hexadecimal digits, by the index of ids: at most two. */
export async function findByPrefix(reads: LedgerReads, prefix: string): Promise<KnownChannel[]> {
  const rows = await reads.db
    .selectFrom("channel_terms")
    .select(["network", "contract", "channel_id"])
    .where("channel_id", ">=", boundOf(prefix, "0"))
    .where("channel_id", "<=", boundOf(prefix, "f"))
    .orderBy("channel_id")
    .limit(2)
    .execute();
  return readChannels(
    reads,
    rows.map(({ network, contract, channel_id }) => ({ network, contract, channelId: channel_id })),
  );
}

function boundOf(prefix: string, digit: string): Hex {
  return `0x${prefix.slice(2).padEnd(64, digit)}`;
}

/** Channels by their keys, in that order. */
async function readChannels(
  reads: LedgerReads,
  keys: readonly ChannelKey[],
): Promise<KnownChannel[]> {
  const places = new Map<string, ChannelKey[]>();
  for (const key of keys) {
    const place = `${key.network}/${key.contract}`;
    places.set(place, [...(places.get(place) ?? []), key]);
  }
  const found = new Map<string, KnownChannel>();
  for (const page of places.values()) {
    for (const each of await readPage(reads, page)) found.set(nameOf(each.channel), each);
  }
  return keys.flatMap((key) => found.get(nameOf(key)) ?? []);
}

function nameOf({ network, contract, channelId }: ChannelKey): string {
  return `${network}/${contract}/${channelId}`;
}

async function readPage(
  { db, dialect }: LedgerReads,
  keys: readonly ChannelKey[],
): Promise<KnownChannel[]> {
  const [first] = keys;
  if (first === undefined) return [];
  const { network, contract } = first;
  const ids = dialect.among(keys.map(({ channelId }) => channelId));
  const of = { network, contract, ids };
  const [channels, terms, states, dues] = await Promise.all([
    db
      .selectFrom("channels")
      .selectAll()
      .where("network", "=", of.network)
      .where("contract", "=", of.contract)
      .where("channel_id", "in", of.ids)
      .execute(),
    db
      .selectFrom("channel_terms")
      .selectAll()
      .where("network", "=", of.network)
      .where("contract", "=", of.contract)
      .where("channel_id", "in", of.ids)
      .execute(),
    db
      .selectFrom("channel_states")
      .selectAll()
      .where("network", "=", of.network)
      .where("contract", "=", of.contract)
      .where("channel_id", "in", of.ids)
      .execute(),
    db
      .selectFrom("channel_dues")
      .selectAll()
      .where("network", "=", of.network)
      .where("contract", "=", of.contract)
      .where("channel_id", "in", of.ids)
      .execute(),
  ]);
  const termsOf = new Map(terms.map((row) => [row.channel_id, row]));
  const stateOf = new Map(states.map((row) => [row.channel_id, row]));
  const dueOf = new Map(dues.map((row) => [row.channel_id, row]));
  return channels.flatMap((row): KnownChannel[] => {
    const term = termsOf.get(row.channel_id);
    const state = stateOf.get(row.channel_id);
    const due = dueOf.get(row.channel_id);
    if (term === undefined) return [];
    const channel: Channel = toChannel(row, dialect);
    return [
      {
        channel,
        config: toChannelConfig(term),
        state: state && toChannelState(state, dialect),
        since: due?.since,
        refusal: toRefusal(due),
        createdAt: term.created_at,
      },
    ];
  });
}
