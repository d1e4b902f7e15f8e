// Writes a program of a release as a fixture, to run beside every later one:
//   node --import tsx --conditions=source packages/devnet/scripts/write-program-fixture.ts SOURCE OUTPUT
// Run it at the commit of the release: SOURCE is the program's file, OUTPUT a file *.mjs.br.
// It is one file without packages beside it, so it opens PostgreSQL alone: SQLite is a binary.
import { writeFile } from "node:fs/promises";
import { brotliCompressSync, constants } from "node:zlib";
import { build, type Plugin } from "esbuild";

const [source, output] = process.argv.slice(2);
if (source === undefined || output === undefined) {
  console.error("Missing argument: SOURCE and OUTPUT.");
  process.exit(2);
}

/** Seed phrases of the tests are English; the other lists would be a third of the fixture. */
const englishOnly: Plugin = {
  name: "english-only",
  setup(building) {
    building.onLoad({ filter: /bip39\/.*wordlists\/[^/]+\.js$/ }, ({ path }) =>
      path.endsWith("english.js") ? undefined : { contents: "export const wordlist = [];" },
    );
  },
};

const { outputFiles } = await build({
  entryPoints: [source],
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  conditions: ["source"],
  external: ["pg-native", "@photostructure/sqlite"],
  banner: {
    js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
  },
  minify: true,
  legalComments: "eof",
  plugins: [englishOnly],
  write: false,
});
const [program] = outputFiles;
if (program === undefined) throw new Error("The bundle is empty.");
const compressed = brotliCompressSync(program.contents, {
  params: { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
});
await writeFile(output, compressed);
