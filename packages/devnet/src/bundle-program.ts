import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

/**
 * Compiles a program of this repository into JavaScript in few files. A loader of TypeScript costs
 * a second at each start. Its memory and time would count as the program's own.
 *
 * @param source the program's file, such as `new URL("./seller.ts", import.meta.url)`
 * @param folder the output folder
 * @param options.minifies as a program is shipped: without comments. One character outside of
 * Latin-1 in any of them doubles the text's memory. Stack traces are harder to read then. Default
 * `false`.
 * @param options.isCommonJs as the bundlers of many programs make it: one CommonJS file, without
 * `import.meta`. Default `false`.
 * @returns the path of the compiled program
 */
export async function bundleProgram(
  source: URL,
  folder: string,
  { minifies = false, isCommonJs = false }: { minifies?: boolean; isCommonJs?: boolean } = {},
): Promise<string> {
  const entryPoint = fileURLToPath(source);
  const extension = isCommonJs ? ".cjs" : ".mjs";
  await build({
    entryPoints: [entryPoint],
    outdir: folder,
    outExtension: { ".js": extension },
    // Lazy imports stay in files of their own.
    splitting: !isCommonJs,
    bundle: true,
    platform: "node",
    format: isCommonJs ? "cjs" : "esm",
    target: "node20",
    conditions: ["source"],
    external: ["pg-native"],
    ...(isCommonJs ? {} : { banner: { js: requireInModules } }),
    plugins: isCommonJs ? [findBinaries] : [findBinaries, stayWhereTheyAre],
    minifyWhitespace: minifies,
    logLevel: "error",
  });
  return join(folder, basename(entryPoint, ".ts") + extension);
}

const requireInModules =
  'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);';

/** A package of binaries is not part of the bundle. */
const findBinaries: Plugin = {
  name: "find-binaries",
  setup(building) {
    building.onResolve({ filter: /^@photostructure\/sqlite$/ }, ({ path, importer }) => ({
      path: createRequire(importer).resolve(path),
      external: true,
    }));
  },
};

/** Code that loads files is resolved from its own location, as without a bundle. */
const stayWhereTheyAre: Plugin = {
  name: "stay-where-they-are",
  setup(building) {
    building.onLoad({ filter: /\/packages\/[^/]+\/src\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      const place = JSON.stringify(pathToFileURL(path).href);
      return { loader: "ts", contents: source.replaceAll("import.meta.url", place) };
    });
  },
};
