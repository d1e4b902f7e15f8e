import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { isDatabaseError } from "./database-error.ts";
import { parseDatabaseUrl } from "./database-url.ts";

describe("a database URL", () => {
  it.each([
    ["sqlite:./coinslot.db", "./coinslot.db"],
    ["sqlite:/var/lib/coinslot.db", "/var/lib/coinslot.db"],
    ["sqlite:///var/lib/coinslot.db", "/var/lib/coinslot.db"],
    ["sqlite://./coinslot.db", "./coinslot.db"],
    ["sqlite::memory:", ":memory:"],
  ])("%s names a SQLite file", (url, path) => {
    expect(parseDatabaseUrl(url)).toMatchObject({ engine: "sqlite", path });
  });

  it.each(["postgres", "postgresql"])("is labelled without its credentials for %s", (scheme) => {
    const url = `${scheme}://user:secret@db.example:6432/coinslot?sslmode=verify-full`;
    expect(parseDatabaseUrl(url)).toEqual({
      engine: "postgres",
      connectionString: url,
      label: "PostgreSQL database db.example:6432/coinslot",
    });
  });

  it.each([
    "",
    "sqlite:",
    "sqlite:file:x.db?mode=secret",
    "./coinslot.db",
    "mysql://user:secret@localhost/x",
    "postgres:user:secret@localhost",
    "postgres://user:secret@host:port/x",
    "https://user:secret@localhost",
  ])("%j is refused, and not repeated in the error", (url) => {
    let error: unknown;
    try {
      parseDatabaseUrl(url);
    } catch (thrown) {
      error = thrown;
    }
    expect(isDatabaseError(error, "configuration")).toBe(true);
    expect(String(error)).toContain("Expected sqlite:./file.db");
    expect(String(error)).not.toContain("secret");
  });

  it.each(["sslrootcert", "sslcert", "sslkey"])(
    "is refused where its %s is not a regular file, which would be read without an end",
    async (name) => {
      const folder = await mkdtemp(join(tmpdir(), "coinslot-url-"));
      onTestFinished(() => rm(folder, { recursive: true }));
      const pipe = join(folder, "%6ap");
      const large = join(folder, "large");
      const small = join(folder, "small");
      execFileSync("mkfifo", [pipe]);
      await writeFile(large, Buffer.alloc(2 ** 20 + 1));
      await writeFile(small, Buffer.alloc(2 ** 20));
      const urlOf = (file: string) => `postgres://me:secret@db.example/coinslot?${name}=${file}`;
      for (const url of [
        urlOf(encodeURIComponent(pipe)),
        // The driver decodes a URL with a space less than others do.
        `${urlOf(pipe)}&application_name=a b`,
        `${urlOf(small)}&${name}=/dev/zero`,
        urlOf(large),
        urlOf(folder),
        // It seems regular and empty, and has an end for no reader.
        urlOf("/proc/self/pagemap"),
      ]) {
        const error = {
          kind: "configuration",
          message: expect.stringMatching(`^${name} of the database URL names`),
        };
        expect(() => parseDatabaseUrl(url)).toThrow(expect.objectContaining(error));
      }
      expect(parseDatabaseUrl(urlOf(small))).toMatchObject({ engine: "postgres" });
      expect(parseDatabaseUrl(urlOf(join(folder, "none")))).toMatchObject({ engine: "postgres" });
    },
  );
});
