import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";

/**
 * A separate connection to a database, for a test that reads and writes beside the program that
 * owns it.
 */
export interface DatabaseReader {
  engine: "sqlite" | "postgres";
  /** Executes one statement, and returns its rows as the driver has them. */
  read(statement: string): Promise<Record<string, unknown>[]>;
  /** Executes any number of statements, separated by semicolons. */
  execute(statements: string): Promise<void>;
}

/**
 * Opens a database for the duration of `work`.
 *
 * @param url `sqlite:file.db` or `postgres://…`
 */
export async function withDatabase<Result>(
  url: string,
  work: (reader: DatabaseReader) => Promise<Result>,
): Promise<Result> {
  if (url.startsWith("sqlite:")) {
    const handle = new DatabaseSync(url.slice("sqlite:".length));
    try {
      return await work({
        engine: "sqlite",
        async read(statement) {
          return handle
            .prepare(statement)
            .all()
            .map((row) => ({ ...row }));
        },
        async execute(statements) {
          handle.exec(statements);
        },
      });
    } finally {
      handle.close();
    }
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work({
      engine: "postgres",
      read: async (statement) => (await client.query(statement)).rows,
      async execute(statements) {
        await client.query(statements);
      },
    });
  } finally {
    await client.end();
  }
}
