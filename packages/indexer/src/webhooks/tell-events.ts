import { appendEvents, type Dialect, type DirectedEvent } from "@coinslot/storage";
import { type Selectable, sql, type Transaction } from "kysely";
import { hexOfBytes } from "../store/bytes.ts";
import { outboxTables } from "../store/migrations/add-webhooks.ts";
import { blockOfPosition } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { describeTransfer, findTokens, type ToldToken } from "./describe-transfer.ts";
import {
  deleteTold,
  type Follower,
  followersOf,
  insertReverted,
  insertTold,
  insertUnsent,
  readReverted,
  readTold,
  readUnsent,
  type ToldRow,
} from "./told-transfers.ts";
import { findWatchers, type Watchers } from "./watched-addresses.ts";

type EventRow = Selectable<IndexerSchema["indexer_events"]>;
/** A transfer with its token and block. */
type ToldFacts = Omit<EventRow, "id" | "kind">;

/** Events that are matched at once. */
const eventsAtOnce = 5_000;

/**
 * Tells receivers about the new rows of `indexer_events`, in the transaction that has written them:
 * transfers of watched addresses, and those that were told and are gone. Rows of a process of the
 * release before, which tells nobody, are told by the next call.
 *
 * Only the holder of the writer lease calls it. So events of a transfer have the order of their
 * commits.
 */
export async function tellEvents(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
): Promise<void> {
  if (!(await isAnythingWatched(transaction))) return;
  for (;;) {
    const { last_event } = await transaction
      .selectFrom("indexer_telling")
      .select("last_event")
      .executeTakeFirstOrThrow();
    const rows = await transaction
      .selectFrom("indexer_events")
      .selectAll()
      .where("id", ">", last_event)
      .orderBy("id")
      .limit(sql.lit(eventsAtOnce))
      .execute();
    const last = rows.at(-1);
    if (last === undefined) return;
    await tell(transaction, dialect, rows);
    await transaction.updateTable("indexer_telling").set({ last_event: last.id }).execute();
    if (rows.length < eventsAtOnce) return;
  }
}

async function isAnythingWatched(transaction: Transaction<IndexerSchema>): Promise<boolean> {
  const { rows } = await sql`
    select 1 where exists (select 1 from indexer_watched) or exists (select 1 from indexer_told)
      or exists (select 1 from indexer_reverted)
  `.execute(transaction);
  return rows.length > 0;
}

async function tell(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  rows: readonly EventRow[],
): Promise<void> {
  const arriving = rows.filter(({ kind }) => kind === "transfer");
  const watchers = await findWatchers(transaction, dialect, rows.flatMap(sidesOf));
  const before = await readTold(transaction, dialect, rows);
  const reverted = await readReverted(transaction, dialect, arriving);
  if (watchers.size === 0 && before.length === 0 && reverted.length === 0) return;
  const tokens = await findTokens(transaction, rows);
  const followers = [...followersOf(before), ...reverted];
  const unsent = createReceivers(await readUnsent(transaction, dialect, arriving));
  const receiversOf = createMatching(watchers, followers, unsent);
  // A rewind has old blocks read anew, which only those who were told of them hear of.
  const followersAlone = createMatching(new Map(), followers, unsent);
  const news = createNews(before);
  const left: Follower[] = [];
  for (const row of rows) {
    const token = tokens.get(row.token_id);
    if (row.kind === "retraction") {
      // Above finality an ordinary reorganisation moves it: it is new to those who watch by then.
      const isFinal = token !== undefined && blockOfPosition(row.position) <= token.finalTo;
      const added = isFinal ? unsentOf(row, { watchers, sent: news.toldAt(row) }) : [];
      for (const each of added) unsent.add(each);
      left.push(...added);
      news.retract(row);
    } else if (token !== undefined) {
      const isOld = blockOfPosition(row.position) < token.toldFrom;
      const matching = { token, receiversOf: isOld ? followersAlone : receiversOf, dialect };
      for (const told of toldOf(row, matching)) news.include(told);
    }
  }
  await deleteTold(transaction, dialect, news.gone());
  await insertReverted(transaction, dialect, news.reverted);
  await insertUnsent(transaction, dialect, left);
  await insertTold(transaction, dialect, news.added());
  await appendEvents({ dialect, tables: outboxTables }, transaction, news.events);
}

type TransactionId = Pick<ToldFacts, "token_id" | "transaction_hash">;
/** The receivers that hear about a transfer by its sender or recipient. */
export type Matching = (row: TransactionId, side: string) => ReadonlySet<string>;

/**
 * Matches a transfer with the receivers that watch an address, without those of `unsent`. Those
 * that know of the address's transfers in the same transaction hear how these end, also after
 * `unwatch`.
 */
export function createMatching(
  watchers: Watchers,
  known: readonly Follower[],
  unsent: Pick<Receivers, "of">,
): Matching {
  const followers = createReceivers(known);
  return (row, side) => {
    const left = unsent.of(row, side);
    const watching = (watchers.get(side) ?? []).filter((endpoint) => !left.has(endpoint));
    return new Set([...watching, ...followers.of(row, side)]);
  };
}

/** Receivers by an address in a transaction. */
interface Receivers {
  of(row: TransactionId, side: string): ReadonlySet<string>;
  add(receiver: Follower): void;
}

export function createReceivers(rows: readonly Follower[]): Receivers {
  const none: ReadonlySet<string> = new Set();
  const placeOf = ({ token_id, transaction_hash }: TransactionId, side: string) =>
    `${token_id} ${hexOfBytes(transaction_hash)} ${side}`;
  const byPlace = new Map<string, Set<string>>();
  function add(row: Follower): void {
    const place = placeOf(row, row.address);
    const ofPlace = byPlace.get(place);
    if (ofPlace === undefined) byPlace.set(place, new Set([row.endpoint_id]));
    else ofPlace.add(row.endpoint_id);
  }
  for (const row of rows) add(row);
  return {
    add,
    of: (row, side) => (byPlace.size === 0 ? none : (byPlace.get(placeOf(row, side)) ?? none)),
  };
}

function sidesOf(row: ToldFacts): string[] {
  return [...new Set([hexOfBytes(row.from_address), hexOfBytes(row.to_address)])];
}

/** The receivers that watch an address of a retracted transfer, and were not sent that transfer. */
function unsentOf(
  row: EventRow,
  { watchers, sent }: { watchers: Watchers; sent: readonly ToldRow[] },
): Follower[] {
  const known = createReceivers(followersOf(sent));
  const { token_id, transaction_hash } = row;
  return sidesOf(row).flatMap((address) =>
    (watchers.get(address) ?? [])
      .filter((endpoint) => !known.of(row, address).has(endpoint))
      .map((endpoint_id) => ({ token_id, transaction_hash, endpoint_id, address })),
  );
}

/** A row for each receiver that hears about the sender or the recipient. */
export function toldOf(
  row: ToldFacts,
  {
    token,
    receiversOf,
    dialect,
  }: {
    token: ToldToken;
    receiversOf: Matching;
    dialect: Dialect;
  },
): ToldRow[] {
  const matched = sidesOf(row).map((side) => ({ side, endpoints: receiversOf(row, side) }));
  const endpoints = new Set(matched.flatMap((each) => [...each.endpoints]));
  return [...endpoints].map((endpoint) => {
    const addresses = matched
      .filter((each) => each.endpoints.has(endpoint))
      .map(({ side }) => side);
    const { key, payload } = describeTransfer(row, { token, addresses, dialect });
    return {
      token_id: row.token_id,
      position: row.position,
      endpoint_id: endpoint,
      chain_id: token.chainId,
      block_number: blockOfPosition(row.position),
      block_hash: row.block_hash,
      transaction_hash: row.transaction_hash,
      key,
      payload,
      final_at_ms: null,
    };
  });
}

/** Follows the told transfers of one step, and collects the events in their order. */
function createNews(before: readonly ToldRow[]) {
  const placeOf = ({ token_id, position }: { token_id: number; position: number }) =>
    `${token_id} ${position}`;
  /** The last event of each place. */
  const now = new Map<string, Map<string, ToldRow>>();
  const events: DirectedEvent[] = [];
  const reverted: ToldRow[] = [];
  for (const row of before) at(row).set(row.endpoint_id, row);

  function at(place: { token_id: number; position: number }): Map<string, ToldRow> {
    const known = now.get(placeOf(place)) ?? new Map<string, ToldRow>();
    now.set(placeOf(place), known);
    return known;
  }

  function revert(row: ToldRow): void {
    at(row).delete(row.endpoint_id);
    reverted.push(row);
    events.push(eventOf("transfer.reverted", row));
  }

  return {
    events,
    reverted,
    toldAt: (place: EventRow): ToldRow[] => [...at(place).values()],
    include(row: ToldRow): void {
      const old = at(row).get(row.endpoint_id);
      // A repetition of what was told.
      if (old !== undefined && isSame(old, row)) return;
      if (old !== undefined) revert(old);
      at(row).set(row.endpoint_id, row);
      events.push(eventOf("transfer.included", row));
    },
    retract(gone: EventRow): void {
      for (const row of [...at(gone).values()]) revert(row);
    },
    gone: () => before.filter((row) => at(row).get(row.endpoint_id) !== row),
    added: () => {
      const old = new Set(before);
      return [...now.values()].flatMap((known) =>
        [...known.values()].filter((row) => !old.has(row)),
      );
    },
  };
}

/** Whether both are the same transfer in the same block. */
function isSame(a: ToldRow, b: Pick<ToldRow, "block_hash" | "transaction_hash">): boolean {
  return (
    Buffer.compare(a.block_hash, b.block_hash) === 0 &&
    Buffer.compare(a.transaction_hash, b.transaction_hash) === 0
  );
}

/** An event about a told transfer, for its receiver. */
export function eventOf(type: string, { key, payload, endpoint_id }: ToldRow): DirectedEvent {
  return { key, type, payload, endpoints: [endpoint_id] };
}
