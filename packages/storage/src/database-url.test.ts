import { describe, expect, it } from "vitest";
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
});
