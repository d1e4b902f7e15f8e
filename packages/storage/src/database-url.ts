import { closeSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseError } from "./database-error.ts";

/**
 * Location of a database, taken from its URL. `label` names it in messages, without credentials.
 */
export type DatabaseLocation =
  | { engine: "sqlite"; path: string; label: string }
  | { engine: "postgres"; connectionString: string; label: string };

/** SQLite's path for an in-memory database. */
export const memoryPath = ":memory:";

const expectation =
  "Expected sqlite:./file.db, sqlite::memory: or postgres://user:password@host:5432/database.";

/**
 * Reads `sqlite:<path>`, `sqlite::memory:`, `postgres://…` and `postgresql://…`. Throws a
 * `DatabaseError` of kind `configuration` that repeats nothing of the URL, since it may hold a
 * password. Files of certificates are regular, and of at most 1 MiB.
 */
export function parseDatabaseUrl(url: string): DatabaseLocation {
  if (url.startsWith("sqlite:")) {
    const path = url.slice("sqlite:".length).replace(/^\/\//, "");
    if (path === "") throw new DatabaseError("configuration", `No file in the URL. ${expectation}`);
    // SQLite would take its own URIs apart, and open another file than the one of this name.
    if (path.startsWith("file:"))
      throw new DatabaseError("configuration", `A file: URI in the URL. ${expectation}`);
    return { engine: "sqlite", path, label: `SQLite database ${path}` };
  }
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new DatabaseError("configuration", `Not a database URL. ${expectation}`);
  }
  if (!URL.canParse(url)) {
    throw new DatabaseError("configuration", `Malformed PostgreSQL URL. ${expectation}`);
  }
  refuseOddCertificates(url);
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || searchParams.get("host") || "localhost";
  const label = `PostgreSQL database ${host}:${port || "5432"}${pathname}`;
  return { engine: "postgres", connectionString: url, label };
}

/** Parameters whose files the driver reads, before it connects. */
const certificateNames = ["sslrootcert", "sslcert", "sslkey"];
const maxCertificateBytes = 2 ** 20;

/** Reading a pipe or a device would have no end, and no signal interrupts it. */
function refuseOddCertificates(url: string): void {
  // The driver first encodes a URL that has a space or an odd percent sign.
  const forms = [url, encodeURI(url).replace(/%25(\d\d)/g, "%$1")];
  for (const form of forms.filter((each) => URL.canParse(each))) {
    const { searchParams } = new URL(form);
    for (const name of certificateNames) {
      if (!searchParams.getAll(name).some(isOddFile)) continue;
      throw new DatabaseError(
        "configuration",
        `${name} of the database URL names something else than a regular file of at most 1 MiB`,
      );
    }
  }
}

function isOddFile(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return false;
    if (!found.isFile() || found.size > maxCertificateBytes) return true;
    // A file of /proc seems empty, and may never end.
    return found.size === 0 && isLong(path);
  } catch {
    // The driver cannot read it either, and says so.
    return false;
  }
}

function isLong(path: string): boolean {
  const file = openSync(path, "r");
  try {
    // Some files of /proc refuse reads of an odd length.
    const bytes = Buffer.alloc(65_536);
    for (let length = 0; length <= maxCertificateBytes; ) {
      const count = readSync(file, bytes, 0, bytes.length, null);
      if (count === 0) return false;
      length += count;
    }
    return true;
  } finally {
    closeSync(file);
  }
}

/** True if a database is in the memory of this process, where one connection alone sees it. */
export function isInMemory(url: string): boolean {
  const location = parseDatabaseUrl(url);
  return location.engine === "sqlite" && location.path === memoryPath;
}
