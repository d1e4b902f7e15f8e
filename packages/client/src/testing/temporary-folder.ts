import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";

/** Registers hooks that give every test an empty folder; returns how to name a file in it. */
export function useTemporaryFolder(): (name: string) => string {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-client-"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  return (name) => join(folder, name);
}
