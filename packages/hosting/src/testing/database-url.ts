import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@coinslot/devnet";
import { onTestFinished } from "vitest";

/** Both database engines, for `describe.each`. */
export const engines = ["sqlite", "postgres"] as const;

/** The URL of an empty database that ends with the test. */
export async function createDatabaseUrl(engine: (typeof engines)[number]): Promise<string> {
  if (engine === "postgres") {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    return url;
  }
  const directory = await mkdtemp(join(tmpdir(), "coinslot-hosting-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return `sqlite:${join(directory, "test.db")}`;
}
