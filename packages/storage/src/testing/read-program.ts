import { sql } from "kysely";
import { openDatabase } from "../index.ts";

/** A program that a test bundles: reads a file as operators do, and prints one row. */
async function read(url: string): Promise<void> {
  const database = await openDatabase({ url, readOnly: true, inThread: true });
  const { rows } = await sql`select 1 as number`.execute(database.kysely);
  process.stdout.write(JSON.stringify(rows));
  await database.close();
}

read(process.argv[2] ?? "").catch((error: unknown) => {
  process.stderr.write(String(error));
  process.exitCode = 1;
});
