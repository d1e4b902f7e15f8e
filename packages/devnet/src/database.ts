import { randomBytes } from "node:crypto";
import pg from "pg";

export type Database = {
  url: string;
  /** Removes the database, and cuts the connections to it that are still open. Idempotent. */
  drop: () => Promise<void>;
};

export type DatabaseSource = {
  /** URL of a database on the same server, without connections. Default: an empty one. */
  template?: string;
};

/**
 * Creates a database with a name of its own on the server at `adminUrl`, a superuser's URL. It is
 * empty, or a copy.
 */
export async function createDatabase(
  adminUrl: string,
  { template }: DatabaseSource = {},
): Promise<Database> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const source = template === undefined ? "template1" : new URL(template).pathname.slice(1);
  await execute(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${pg.escapeIdentifier(source)}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => execute(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
