import { statSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  loadSqlite,
  notADatabase,
  type SqliteDatabase,
  sqliteCodeOf,
} from "../budget/sqlite-lock.ts";
import { followLinks, hasCode, syncDirectory } from "../files/own-file.ts";
import { refuseForeignFiles } from "../files/refuse-foreign-files.ts";
import { PaymentError } from "../payment-error.ts";
import { type ChannelRecord, columns, parseRecord, toRow } from "./channel-record.ts";

/** Channels of a buyer, in a database of SQLite that any number of processes may share. */
export interface ChannelStore {
  /** The real path of its file. */
  readonly path: string;
  find(id: string): ChannelRecord | undefined;
  list(): ChannelRecord[];
  /** Adds a channel, unless it is there, and returns the stored one. */
  create(record: ChannelRecord): ChannelRecord;
  /**
   * Changes a channel in one transaction, and returns it once it is flushed to the disk. The change
   * sees all channels, and returns the same record to leave it. Ceiling and spent sum never fall.
   */
  update(
    id: string,
    change: (record: ChannelRecord, all: () => ChannelRecord[]) => ChannelRecord,
  ): ChannelRecord;
  /**
   * Removes a channel without money that nothing was signed for. The chain shows as much of it as
   * the row, and a seller may offer any number of channels.
   */
  forgetIfUnused(id: string): void;
  /** Purchases at an origin by another scheme. */
  purchasesAt(origin: string): number;
  notePurchase(origin: string): void;
  close(): void;
}

/** Marks the file as one of this program: "coin". */
const applicationId = 0x636f696e;
const version = 1;

const schema = `
  create table channels (
    id text primary key, network text not null,
    payer text not null, payer_authorizer text not null, receiver text not null,
    receiver_authorizer text not null, token text not null, withdraw_delay integer not null,
    salt text not null, origin text not null, url text not null, lane integer not null,
    ceiling text not null, charged text not null, spent text not null,
    balance text not null, claimed text not null,
    deposit_amount text, deposit_salt text, deposit_end integer, deposit_reported integer,
    withdrawing integer not null, used_at integer not null
  ) without rowid;
  create table sellers (origin text primary key, purchases integer not null) without rowid;
  pragma application_id = ${applicationId};
  pragma user_version = ${version};
`;

/**
 * Opens the store, and creates an absent file. A malformed one is never overwritten.
 *
 * @throws PaymentError `channel_file_corrupt` or `channel_file_unavailable`
 */
export async function openChannelStore(file: string): Promise<ChannelStore> {
  const path = await followLinks(resolve(file));
  const { DatabaseSync } = await loadSqlite();
  let database: SqliteDatabase | undefined;
  try {
    await createOwned(path);
    const { ino, nlink } = await stat(path);
    if (nlink > 1) {
      const text = `The channel file has ${nlink} names (hard links): keep one, and make the others symbolic links`;
      throw new PaymentError("channel_file_unavailable", text);
    }
    await refuseForeignFiles(path);
    database = new DatabaseSync(path);
    // Flushed at each commit: a ceiling is on the disk before its signature exists.
    database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    prepareSchema(database);
    return createStore(database, path, ino);
  } catch (cause) {
    database?.close();
    throw asPaymentError(cause);
  }
}

async function createOwned(path: string): Promise<void> {
  try {
    const handle = await open(path, "wx", 0o600);
    await handle.close();
    await syncDirectory(dirname(path));
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    if (!(await stat(path)).isFile()) throw new Error("It is not a regular file");
  }
}

function prepareSchema(database: SqliteDatabase): void {
  const read = (pragma: string): unknown =>
    Object.values(Object(database.prepare(`PRAGMA ${pragma}`).get()))[0];
  // Two processes may create it at once: the second one waits here, and finds it made.
  database.exec("BEGIN IMMEDIATE");
  try {
    const found = read("user_version");
    const isEmpty = database.prepare("select 1 from sqlite_schema limit 1").get() === undefined;
    if (found === 0 && isEmpty) database.exec(schema);
    else if (read("application_id") !== applicationId) {
      throw new PaymentError("channel_file_corrupt", "The channel file is another program's");
    } else if (found !== version) {
      const text = `The channel file is of version ${String(found)}, which a newer client wrote; this one reads version ${version}`;
      throw new PaymentError("channel_file_corrupt", text);
    }
    database.exec("COMMIT");
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** A commit that failed may have rolled back already. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // The error of the transaction is the one that counts.
  }
}

function createStore(database: SqliteDatabase, path: string, inode: number): ChannelStore {
  const find = database.prepare("select * from channels where id = ?");
  const list = database.prepare("select * from channels order by origin, lane, id");
  const marks = columns.map(() => "?").join(", ");
  const names = columns.join(", ");
  const insert = database.prepare(
    `insert into channels (${names}) values (${marks}) on conflict do nothing`,
  );
  const replace = database.prepare(`insert or replace into channels (${names}) values (${marks})`);
  const forget = database.prepare(
    `delete from channels where id = ? and ceiling = '0' and balance = '0'
      and deposit_amount is null and withdrawing = 0`,
  );
  const met = database.prepare("select purchases from sellers where origin = ?");
  const meet = database.prepare(
    "insert into sellers values (?, 1) on conflict do update set purchases = purchases + 1",
  );

  const findRecord = (id: string) => {
    const row = find.get(id.toLowerCase());
    return row === undefined ? undefined : parseRecord(row);
  };
  const listRecords = () => list.all().map(parseRecord);

  function guard<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw asPaymentError(cause);
    }
  }

  function transact<T>(work: () => T): T {
    return guard(() => {
      // Writes into a removed file would be lost, and its next reader would begin anew.
      if (statSync(path, { throwIfNoEntry: false })?.ino !== inode) {
        throw new Error("The channel file was removed or replaced meanwhile");
      }
      database.exec("BEGIN IMMEDIATE");
      try {
        const result = work();
        database.exec("COMMIT");
        return result;
      } catch (error) {
        rollBack(database);
        throw error;
      }
    });
  }

  function mustFind(id: string): ChannelRecord {
    const record = findRecord(id);
    if (record === undefined) throw new Error(`There is no channel ${id}`);
    return record;
  }

  return {
    path,
    find: (id) => guard(() => findRecord(id)),
    list: () => guard(listRecords),
    create: (record) =>
      transact(() => {
        insert.run(...toRow(record));
        return mustFind(record.id);
      }),
    update: (id, change) =>
      transact(() => {
        const before = mustFind(id);
        const after = change(before, listRecords);
        if (after === before) return before;
        if (after.ceiling < before.ceiling || after.spent < before.spent) {
          throw new RangeError("A ceiling and a spent sum never fall");
        }
        replace.run(...toRow(after));
        return after;
      }),
    forgetIfUnused: (id) => void transact(() => forget.run(id.toLowerCase())),
    purchasesAt: (origin) =>
      guard(() => Number(Object(met.get(origin) ?? { purchases: 0 }).purchases)),
    notePurchase: (origin) => void transact(() => meet.run(origin)),
    close: () => database.close(),
  };
}

function asPaymentError(cause: unknown): PaymentError {
  if (cause instanceof PaymentError) return cause;
  if (sqliteCodeOf(cause) === notADatabase) {
    return new PaymentError("channel_file_corrupt", "The channel file is no database of SQLite");
  }
  const text = "The channel file cannot be read or written";
  return new PaymentError("channel_file_unavailable", text, { cause });
}
