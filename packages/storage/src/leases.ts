import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Database } from "./database.ts";
import type { Migration } from "./migrate.ts";

/**
 * The right of one owner to act for `name` until `expiresAtMs` on the database's clock. `epoch` is
 * a fencing token. It grows with every acquisition, which distinguishes an owner that slept through
 * its expiry from its successor.
 */
export interface Lease {
  readonly name: string;
  /** Unique for each running process, such as a random id made at its start. */
  readonly owner: string;
  readonly epoch: number;
  readonly expiresAtMs: number;
}

/** A lease as the database has it. */
export interface LeaseStanding {
  readonly name: string;
  /** Its owner, or its last one. */
  readonly owner: string;
  /** False where it has expired, or was released. */
  readonly isHeld: boolean;
}

/** Leases on database time; clock skew between processes has no effect. */
export interface Leases {
  /**
   * Takes the lease if it is free, else `undefined`. One that would last for more than ten times
   * `ttlMs` counts as free.
   */
  acquire(wish: { name: string; owner: string; ttlMs: number }): Promise<Lease | undefined>;
  /**
   * Extends the lease to `ttlMs` from now; `undefined` if it has expired, even if it is still free.
   */
  renew(lease: Lease, options: { ttlMs: number }): Promise<Lease | undefined>;
  /** Ends the lease now. Harmless if it is over. */
  release(lease: Lease): Promise<void>;
  /**
   * Ends every lease now. For a process that knows all other owners dead, such as the holder of a
   * file's lock.
   */
  endAll(): Promise<void>;
  /** The leases whose names begin with one of these, held or over. */
  list(prefixes: readonly [string, ...string[]]): Promise<LeaseStanding[]>;
  /**
   * Deletes the leases with this prefix that ended `endedForMs` ago or earlier. Only for names that
   * no guard and no later owner uses. The epoch of a deleted lease begins at 1 again.
   */
  forget(ended: { prefix: string; endedForMs: number }): Promise<void>;
  /**
   * Guard condition for a statement that must not happen after the lease:
   * `update … where … and ${guard(lease)}`. Inside a transaction it keeps others from taking the
   * lease until the commit. The next owner therefore sees every guarded write.
   */
  guard(lease: Lease): RawBuilder<SqlBool>;
  /** Resolves to whether the lease is held at this moment. */
  isHeld(lease: Lease): Promise<boolean>;
}

export interface LeasesOptions<Schema> {
  database: Database<Schema>;
  /** The time in milliseconds, as an expression of SQL. Default: the database's clock. */
  nowMs?: Expression<number>;
}

/**
 * Creates the table of leases if it is missing: part of the migrations of every package that uses
 * leases.
 */
export const leasesMigration: Migration = {
  title: "leases",
  async up(transaction, { types }) {
    await transaction.schema
      .createTable("coinslot_leases")
      .ifNotExists()
      .addColumn("name", types.text, (column) => column.primaryKey())
      .addColumn("owner", types.text, (column) => column.notNull())
      .addColumn("epoch", types.integer, (column) => column.notNull())
      .addColumn("expires_at_ms", types.timestampMs, (column) => column.notNull())
      .execute();
  },
};

/**
 * Longest lease, in those of a wish. One that lasts longer is older than a change by which the
 * database's clock was put back. Its owner may be dead, and would hold it until that time comes.
 */
const longestTtls = 10;

interface LeaseRow {
  epoch: number;
  expires_at_ms: number;
}

function startsWith(prefix: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`substr(name, 1, ${sql.lit(prefix.length)}) = ${prefix}`;
}

/** Requires `leasesMigration`. */
export function createLeases<Schema>({
  database: { kysely, dialect },
  nowMs = dialect.nowMs(),
}: LeasesOptions<Schema>): Leases {
  const isCurrent = ({ name, owner, epoch }: Lease) =>
    sql<SqlBool>`name = ${name} and owner = ${owner} and epoch = ${epoch} and expires_at_ms > ${nowMs}`;

  const guard = (lease: Lease) =>
    sql<SqlBool>`exists (select 1 from coinslot_leases where ${isCurrent(lease)} ${dialect.forShare})`;

  return {
    async acquire({ name, owner, ttlMs }) {
      // Two processes may race for an expired lease: the second waits for the row, finds it taken,
      // and writes nothing.
      const { rows } = await sql<LeaseRow>`
        insert into coinslot_leases as held (name, owner, epoch, expires_at_ms)
        values (${name}, ${owner}, 1, ${nowMs} + ${ttlMs})
        on conflict (name) do update
        set owner = excluded.owner, epoch = held.epoch + 1, expires_at_ms = excluded.expires_at_ms
        where held.expires_at_ms <= ${nowMs}
          or held.expires_at_ms > ${nowMs} + ${longestTtls * ttlMs}
        returning epoch, expires_at_ms
      `.execute(kysely);
      const [row] = rows;
      return row && { name, owner, epoch: row.epoch, expiresAtMs: row.expires_at_ms };
    },

    async renew(lease, { ttlMs }) {
      const { rows } = await sql<LeaseRow>`
        update coinslot_leases set expires_at_ms = ${nowMs} + ${ttlMs}
        where ${isCurrent(lease)} returning epoch, expires_at_ms
      `.execute(kysely);
      const [row] = rows;
      return row && { ...lease, expiresAtMs: row.expires_at_ms };
    },

    async release(lease) {
      await sql`update coinslot_leases set expires_at_ms = 0 where ${isCurrent(lease)}`.execute(
        kysely,
      );
    },

    async endAll() {
      await sql`update coinslot_leases set expires_at_ms = 0`.execute(kysely);
    },

    async list(prefixes) {
      // The table has a row for each name that was ever leased: few.
      const { rows } = await sql<{ name: string; owner: string; is_held: number }>`
        select name, owner, case when expires_at_ms > ${nowMs} then 1 else 0 end as is_held
        from coinslot_leases where ${sql.join(prefixes.map(startsWith), sql` or `)} order by name
      `.execute(kysely);
      return rows.map(({ name, owner, is_held }) => ({ name, owner, isHeld: is_held === 1 }));
    },

    async forget({ prefix, endedForMs }) {
      await sql`
        delete from coinslot_leases
        where ${startsWith(prefix)} and expires_at_ms <= ${nowMs} - cast(${endedForMs} as bigint)
      `.execute(kysely);
    },

    guard,

    async isHeld(lease) {
      const { rows } = await sql`select 1 where ${guard(lease)}`.execute(kysely);
      return rows.length > 0;
    },
  };
}
