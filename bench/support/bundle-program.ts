import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

/**
 * A program that is measured, as JavaScript in few files: what a loader of TypeScript takes of memory and time is none
 * of its own.
 */
export async function bundleProgram(
  name: "seller-process" | "indexer-process",
  folder: string,
): Promise<string> {
  await build({
    entryPoints: [fileURLToPath(new URL(`./${name}.ts`, import.meta.url))],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    // What is imported when it is needed stays apart until then.
    splitting: true,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["source"],
    external: ["pg-native"],
    banner: {
      js: 'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);',
    },
    plugins: [stayWhereTheyAre],
    logLevel: "error",
  });
  return join(folder, `${name}.mjs`);
}

/** What loads binaries is loaded from its own place, as without a bundle. */
const stayWhereTheyAre: Plugin = {
  name: "stay-where-they-are",
  setup(building) {
    building.onResolve({ filter: /^@photostructure\/sqlite$/ }, ({ path, importer }) => ({
      path: createRequire(importer).resolve(path),
      external: true,
    }));
    building.onLoad({ filter: /\/packages\/[^/]+\/src\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      const place = JSON.stringify(pathToFileURL(path).href);
      return { loader: "ts", contents: source.replaceAll("import.meta.url", place) };
    });
  },
};
