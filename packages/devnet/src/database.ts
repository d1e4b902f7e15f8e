import { randomBytes } from "node:crypto";
import pg from "pg";

export type Database = {
  url: string;
  /** Removes the database, and cuts the connections to it that are still open. Idempotent. */
  drop: () => Promise<void>;
};

/**
 * Creates an empty database with a name of its own on the server at `adminUrl`, a superuser's URL.
 */
export async function createDatabase(adminUrl: string): Promise<Database> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await execute(adminUrl, `CREATE DATABASE ${name}`);
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
