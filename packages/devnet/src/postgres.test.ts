import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { expect, it } from "vitest";
import { startPostgres } from "./postgres.ts";
import { preparePostgres } from "./postgres-program.ts";

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

it("PostgreSQL servers start side by side, and leave nothing behind", async () => {
  const [first, second] = await Promise.all([startPostgres(), startPostgres()]);
  const databases = [await first.createDatabase(), await second.createDatabase()];
  for (const { url } of databases) {
    expect(await query(url, "SELECT 2 + 2 AS sum")).toEqual([{ sum: 4 }]);
    expect(await query(url, "SHOW server_encoding")).toEqual([{ server_encoding: "UTF8" }]);
  }
  const [row] = await query(first.url, "SHOW data_directory");
  const { data_directory: directory } = Object(row);
  await first.stop();
  await first.stop();
  await second.stop();
  await expect(query(first.url, "SELECT 1")).rejects.toThrow("ECONNREFUSED");
  expect(existsSync(directory)).toBe(false);
});

it("PostgreSQL runs from a directory that only its owner may enter", async () => {
  const closed = await mkdtemp(join(tmpdir(), "coinslot-closed-"));
  const directory = await mkdtemp(join(tmpdir(), "coinslot-postgres-"));
  try {
    const { initdb } = await preparePostgres({ directory });
    const installation = join(closed, "native");
    await cp(join(dirname(initdb), ".."), installation, {
      recursive: true,
      verbatimSymlinks: true,
    });
    const program = await preparePostgres({ directory, installation });
    const { stdout } = await promisify(execFile)(program.postgres, ["--version"], {
      ...program.user,
      cwd: "/",
    });
    expect(stdout).toMatch(/^postgres \(PostgreSQL\) 18/);
  } finally {
    await rm(closed, { recursive: true });
    await rm(directory, { recursive: true });
  }
});
