import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startProgram } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { CompiledQuery, sql } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../database.ts";
import { DatabaseError } from "../database-error.ts";
import { createReaderDriver, startReaderThread } from "./reader-thread.ts";

interface Schema {
  numbers: { number: number };
}

async function openBoth(): Promise<{ writer: Database<Schema>; reader: Database<Schema> }> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-reader-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const url = `sqlite:${join(folder, "file.db")}`;
  const writer = await openDatabase<Schema>({ url });
  onTestFinished(() => writer.close());
  await writer.kysely.schema.createTable("numbers").addColumn("number", "integer").execute();
  const reader = await openDatabase<Schema>({ url, readOnly: true, inThread: true });
  onTestFinished(() => reader.close());
  return { writer, reader };
}

const add = (writer: Database<Schema>, number: number) =>
  writer.kysely.insertInto("numbers").values({ number }).execute();

/** Takes some tenths of a second. */
const longSelect = sql<{ count: number }>`
  with recursive series(n) as (select 1 union all select n + 1 from series where n < 2000000)
  select count(*) as count from series`;

it("a select in a thread does not hold the event loop", async () => {
  const { writer, reader } = await openBoth();
  let isDone = true;
  // Until a write is quicker, which it never is where it waits for the select.
  while (isDone) {
    isDone = false;
    const long = longSelect.execute(reader.kysely).then(({ rows }) => {
      isDone = true;
      return rows;
    });
    await add(writer, 1);
    const wasDone = isDone;
    expect(await long).toEqual([{ count: 2_000_000 }]);
    isDone = wasDone;
  }
});

it("a transaction in a thread sees one moment, and a later query the next", async () => {
  const { writer, reader } = await openBoth();
  await add(writer, 1);
  await reader.transaction(async (transaction) => {
    const read = () => transaction.selectFrom("numbers").selectAll().execute();
    expect(await read()).toEqual([{ number: 1 }]);
    await add(writer, 2);
    expect(await read()).toEqual([{ number: 1 }]);
  });
  expect(await reader.kysely.selectFrom("numbers").selectAll().execute()).toHaveLength(2);
});

it("a thread that reads writes nothing, and goes on after an error", async () => {
  const { reader } = await openBoth();
  await expect(add(reader, 1)).rejects.toMatchObject({ kind: "configuration" });
  await expect(sql`select * from missing`.execute(reader.kysely)).rejects.toThrow("no such table");
  expect(await reader.kysely.selectFrom("numbers").selectAll().execute()).toEqual([]);
});

it("sums amounts in a thread, beyond 64 bits", async () => {
  const { reader } = await openBoth();
  const { amount } = reader.dialect;
  const [first, second] = [amount.encode(2n ** 200n), amount.encode(1n)];
  const { rows } = await sql<{ total: typeof first }>`
    select coinslot_sum(value) as total from (select ${first} as value union all select ${second})
  `.execute(reader.kysely);
  expect(rows.map(({ total }) => amount.decode(total))).toEqual([2n ** 200n + 1n]);
});

it("a file that is missing is an error, not a thread without an answer", async () => {
  const open = openDatabase({ url: "sqlite:./missing.db", readOnly: true, inThread: true });
  await expect(open).rejects.toMatchObject({ kind: "configuration" });
});

it("a thread that has ended rejects its query, and the next query has a new one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-reader-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  /** A thread whose program answers with its own row, and ends at the statement `end`. */
  const start = async (row: number) => {
    const file = join(folder, `program-${row}.mjs`);
    const program = `
      import { parentPort } from "node:worker_threads";
      parentPort.on("message", ({ id, sql }) => {
        if (sql === "end") process.exit();
        parentPort.postMessage({ id, rows: [${row}] });
      });
      parentPort.postMessage({ id: 0 });`;
    await writeFile(file, program);
    const options = { path: "file.db", label: "A file", pragmas: "", isBuiltIn: false };
    const thread = await startReaderThread({ ...options, program: pathToFileURL(file) });
    if (thread === undefined) throw new Error("The program is missing");
    return thread;
  };
  const driver = createReaderDriver(await start(1), () => start(2));
  onTestFinished(() => driver.destroy());
  const read = async (statement: string) => {
    const connection = await driver.acquireConnection();
    const query = CompiledQuery.raw(statement);
    try {
      return (await connection.executeQuery(query)).rows;
    } finally {
      await driver.releaseConnection(connection);
    }
  };
  expect(await read("select")).toEqual([1]);
  await expect(read("end")).rejects.toBeInstanceOf(DatabaseError);
  expect(await read("select")).toEqual([2]);
});

it("a missing program of the thread is no error of the file, as in a bundle", async () => {
  const program = new URL("./missing.js", import.meta.url);
  const options = { path: "file.db", label: "A file", pragmas: "", isBuiltIn: false };
  expect(await startReaderThread({ ...options, program })).toBeUndefined();
});

it("reads a file in a CommonJS bundle, which has no place of its own", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-reader-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const url = `sqlite:${join(folder, "file.db")}`;
  const writer = await openDatabase<Schema>({ url });
  onTestFinished(() => writer.close());
  const source = new URL("../testing/read-program.ts", import.meta.url);
  const file = await bundleProgram(source, folder, { isCommonJs: true });
  const program = startProgram(process.execPath, [file, url], { folder });
  onTestFinished(() => program.kill());
  expect({ code: await program.ended, error: program.stderr() }).toMatchObject({ code: 0 });
  expect(program.stdout()).toBe('[{"number":1}]');
});
