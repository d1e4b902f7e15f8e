import { once } from "node:events";
import { type Database, openDatabase } from "../database.ts";
import { isDatabaseError } from "../database-error.ts";
import { migrate } from "../migrate.ts";
import { lockDatabaseFile } from "../sqlite/lock-file.ts";
import { createWriter } from "../writer.ts";
import { type CounterSchema, counterMigrations } from "./schema.ts";

/** A lock that is garbage collected is released. */
const locks: unknown[] = [];

/**
 * A program that the tests run in a process of its own: `node program.ts <command> <database URL>`.
 */
const commands: Record<string, (url: string) => Promise<void>> = {
  /** Opens, reports it, waits for a line, migrates, reports the outcome. */
  async migrate(url) {
    const database = await openDatabase<CounterSchema>({ url });
    tell("ready");
    await once(process, "message");
    tell(await outcome(migrate(database, { name: "counters", migrations: counterMigrations })));
    await database.close();
    process.disconnect();
  },
  /** Writes rows, and reports each once it is written, until it is killed. */
  async write(url) {
    const database: Database<CounterSchema> = await openDatabase<CounterSchema>({ url });
    const { write } = createWriter(database);
    for (let id = 1; ; id++) {
      await write((tx) => tx.insertInto("counters").values({ id, value: id }).execute());
      tell(id);
    }
  },
  /** Takes the lock of the file, reports the outcome, and keeps it until it is killed. */
  async lock(url) {
    tell(await outcome(lockDatabaseFile(url).then((lock) => locks.push(lock))));
  },
};

async function outcome(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "done";
  } catch (error) {
    return isDatabaseError(error) ? `${error.kind}: ${error.message}` : String(error);
  }
}

function tell(message: string | number): void {
  process.send?.(message);
}

// Keeps the process until it is killed or lets go of the channel.
process.on("message", () => {});
const [command = "", url = ""] = process.argv.slice(2);
await commands[command]?.(url);
