import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { bundleProgram } from "./bundle-program.ts";

/**
 * Compiles a program for the tests of a file, which start it in processes of its own. A loader of
 * TypeScript takes two seconds of processor time at each start.
 *
 * @param source the program's file, such as `new URL("./child.ts", import.meta.url)`
 * @returns a function that returns the path of the compiled program, inside tests
 */
export function useProgram(source: URL): () => string {
  let folder = "";
  let file = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-program-"));
    file = await bundleProgram(source, folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return () => file;
}
