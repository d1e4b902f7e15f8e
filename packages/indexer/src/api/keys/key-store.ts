import { randomBytes } from "node:crypto";
import type { Database } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { Limit } from "../limits/limit.ts";
import { type ApiKeyText, generateKey, hashKey, isSameHash, readKey } from "./api-key.ts";
import { writeDurably } from "./durable-write.ts";

/** A key as stored. It never contains the key itself. */
export interface StoredKey {
  /** Names the key towards its owner. */
  hashedKey: string;
  owner: string;
  label: string | undefined;
  /** Lifetime from `createdAtMs` on; 0 never ends. */
  ttlMs: number;
  createdAtMs: number;
  lastActiveAtMs: number;
  /** Raises the limits of all operations. */
  limit: Limit | undefined;
}

/** Properties of a key to be made. */
export interface KeyWish {
  owner: string;
  label?: string | undefined;
  /** Default 0: it never expires. */
  ttlMs?: number | undefined;
  limit?: Limit | undefined;
  /** A key made elsewhere, such as the public one of a development chain. Default: a fresh one. */
  key?: string | undefined;
}

/** A new key, and its entry. */
interface CreatedKey {
  key: string;
  stored: StoredKey;
}

/** Result of checking a presented key. */
export type KeyCheck = { state: "valid" | "expired"; key: StoredKey } | { state: "invalid" };

/** The keys of the API. */
export interface KeyStore {
  check(presented: string): Promise<KeyCheck>;
  /**
   * Resolves with the key itself, which is stored nowhere.
   * @throws TypeError if `wish.key` has not the form of one
   */
  create(wish: KeyWish): Promise<CreatedKey>;
  /** As `create`. Resolves to `undefined` where the owner has `maxOfOwner` keys already. */
  createWithin(maxOfOwner: number, wish: KeyWish): Promise<CreatedKey | undefined>;
  /** Newest first; of one owner, or of all. */
  list(owner?: string): Promise<StoredKey[]>;
  /** Resolves to whether there was such a key, and of this owner if one is given. */
  revoke(hashedKey: string, owner?: string): Promise<boolean>;
}

interface KeyRow {
  id: string;
  salt: string;
  hash: string;
  owner: string;
  label: string | null;
  ttl_ms: number;
  created_at_ms: number;
  last_active_at_ms: number;
  limit_max: number | null;
  limit_window_ms: number | null;
  now_ms: number;
}

// A resolution of one minute suits human readers, and saves a write for each request.
const activityStepMs = 60_000;
const unknownKey = { salt: "00", hash: hashKey("", "00") };

/** Keeps keys in the database, on its clock. Needs the API's migrations. */
export function createKeyStore<Schema>(database: Database<Schema>): KeyStore {
  const { kysely, dialect } = database;
  const columns = sql`id, salt, hash, owner, label, ttl_ms, created_at_ms, last_active_at_ms,
    limit_max, limit_window_ms, ${dialect.nowMs()} as now_ms`;

  async function touch({ id, last_active_at_ms, now_ms }: KeyRow): Promise<void> {
    if (now_ms - last_active_at_ms < activityStepMs) return;
    await sql`
      update indexer_api_keys set last_active_at_ms = ${now_ms}
      where id = ${id} and last_active_at_ms < ${now_ms}
    `.execute(kysely);
  }

  async function insert<Any>(tx: Transaction<Any>, wish: KeyWish): Promise<CreatedKey> {
    const { owner, label, ttlMs = 0, limit, key: given } = wish;
    const { id, key } = given === undefined ? generateKey() : requireForm(given);
    const salt = randomBytes(16).toString("hex");
    const { rows } = await sql<KeyRow>`
      insert into indexer_api_keys (id, salt, hash, owner, label, ttl_ms, created_at_ms,
        last_active_at_ms, limit_max, limit_window_ms)
      values (${id}, ${salt}, ${hashKey(key, salt)}, ${owner}, ${label ?? null}, ${ttlMs},
        ${dialect.nowMs()}, ${dialect.nowMs()}, ${limit?.max ?? null}, ${limit?.windowMs ?? null})
      returning ${columns}
    `.execute(tx);
    const [row] = rows;
    if (row === undefined) throw new Error("Storing a key returned no row.");
    return { key, stored: toStoredKey(row) };
  }

  return {
    async check(presented) {
      const parts = readKey(presented);
      if (parts === undefined) return { state: "invalid" };
      const { rows } = await sql<KeyRow>`
        select ${columns} from indexer_api_keys where id = ${parts.id}
      `.execute(kysely);
      const [row] = rows;
      // An unknown id costs the same work as a known one.
      const { salt, hash } = row ?? unknownKey;
      const isSame = isSameHash(hashKey(parts.key, salt), hash);
      if (row === undefined || !isSame) return { state: "invalid" };
      const key = toStoredKey(row);
      if (isExpired(row)) return { state: "expired", key };
      await touch(row);
      return { state: "valid", key };
    },

    create(wish) {
      return writeDurably(database, (tx) => insert(tx, wish));
    },

    createWithin(maxOfOwner, wish) {
      return writeDurably(database, async (tx) => {
        // Two processes would count the same keys otherwise, and each add the last one.
        await dialect.lockKey(tx, `coinslot:keys:${wish.owner}`);
        const { rows } = await sql`
          select 1 from indexer_api_keys where owner = ${wish.owner} limit ${maxOfOwner}
        `.execute(tx);
        return rows.length < maxOfOwner ? insert(tx, wish) : undefined;
      });
    },

    async list(owner) {
      const { rows } = await sql<KeyRow>`
        select ${columns} from indexer_api_keys
        ${owner === undefined ? sql`` : sql`where owner = ${owner}`}
        order by created_at_ms desc, id
      `.execute(kysely);
      return rows.map(toStoredKey);
    },

    async revoke(hashedKey, owner) {
      const { numAffectedRows } = await writeDurably(database, (tx) =>
        sql`
        delete from indexer_api_keys where hash = ${hashedKey}
        ${owner === undefined ? sql`` : sql`and owner = ${owner}`}
      `.execute(tx),
      );
      return numAffectedRows === 1n;
    },
  };
}

function requireForm(text: string): ApiKeyText {
  const parts = readKey(text);
  if (parts === undefined)
    throw new TypeError("A key looks like csk_<12 letters or digits>_<secret>.");
  return parts;
}

function isExpired({ ttl_ms, created_at_ms, now_ms }: KeyRow): boolean {
  return ttl_ms > 0 && created_at_ms + ttl_ms <= now_ms;
}

function toStoredKey(row: KeyRow): StoredKey {
  return {
    hashedKey: row.hash,
    owner: row.owner,
    label: row.label ?? undefined,
    ttlMs: row.ttl_ms,
    createdAtMs: row.created_at_ms,
    lastActiveAtMs: row.last_active_at_ms,
    limit:
      row.limit_max === null || row.limit_window_ms === null
        ? undefined
        : { max: row.limit_max, windowMs: row.limit_window_ms },
  };
}
