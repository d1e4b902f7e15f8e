// Builds the pages of packages with Vite: packages/X/pages/main.ts, or main.tsx, becomes
// packages/X/assets/, with hashed names and a manifest. A package whose sources are unchanged is
// left as it is.
//   node scripts/pages.mjs
import { createHash, randomUUID } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const project = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Builds what is stale. Processes may build at once: each puts its files in place before the
 * manifest that names them.
 *
 * @param {string} [root] folder that has `packages/`
 * @returns {Promise<string[]>} names of the packages that were built
 * @throws with Vite's message where a source is wrong
 */
export async function buildPages(root = project) {
  const stale = packagesWithPages(root).filter((name) => isStale(root, name));
  for (const name of stale) await buildPackage(root, name);
  return stale;
}

/** Global setup of the test runner: a test reads built pages. */
export async function setup() {
  await buildPages();
}

function packagesWithPages(root) {
  return readdirSync(join(root, "packages")).filter((name) => entryOf(root, name) !== undefined);
}

function entryOf(root, name) {
  const paths = ["main.ts", "main.tsx"].map((file) => join(root, "packages", name, "pages", file));
  return paths.find((path) => existsSync(path));
}

/** The stamp is outside of `assets`, which is published. */
function stampOf(root, name) {
  return join(root, "node_modules", ".cache", "coinslot-pages", `${name}.json`);
}

function isStale(root, name) {
  if (!existsSync(join(root, "packages", name, "assets", "manifest.json"))) return true;
  const stamp = stampOf(root, name);
  if (!existsSync(stamp)) return true;
  const { tools, sources } = JSON.parse(readFileSync(stamp, "utf8"));
  if (tools !== hashOfTools(root)) return true;
  return Object.entries(sources).some(([path, hash]) => hashOf(join(root, path)) !== hash);
}

/** This script, and the versions of all that a page bundles. */
function hashOfTools(root) {
  return hashOf(join(root, "pnpm-lock.yaml")) + hashOf(fileURLToPath(import.meta.url));
}

function hashOf(path) {
  if (!existsSync(path)) return "";
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

async function buildPackage(root, name) {
  const started = Date.now();
  const staging = join(root, "node_modules", ".cache", "coinslot-pages", randomUUID());
  try {
    const sources = await runVite(root, name, staging);
    putInPlace(staging, join(root, "packages", name, "assets"));
    const stamp = stampOf(root, name);
    const written = `${stamp}.${randomUUID()}`;
    writeFileSync(written, JSON.stringify({ tools: hashOfTools(root), sources }, null, 2));
    renameSync(written, stamp);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  // On stderr: the output of a command that this runs before may be read by a program.
  console.error(`Built the pages of ${name} in ${Date.now() - started} ms.`);
}

/** @returns the hash of each source by its path, as it was before Vite read it or later. */
async function runVite(root, name, staging) {
  const { build } = await import("vite");
  // A style sheet that another imports is no module: all of them in the two folders are sources.
  const paths = new Set([...styleSheetsIn(root, name), ...styleSheetsIn(root, "pages")]);
  const recordSources = {
    name: "record-sources",
    buildEnd() {
      // A module may be a file with a query: a document that is imported as text.
      for (const path of this.getModuleIds()) paths.add(path.replace(/\?raw$/, ""));
    },
  };
  await build({
    configFile: false,
    root: join(root, "packages", name, "pages"),
    base: "./",
    publicDir: false,
    logLevel: "warn",
    plugins: [recordSources],
    resolve: { conditions: ["source", "module", "browser", "production"] },
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: staging,
      emptyOutDir: true,
      assetsDir: "",
      manifest: "manifest.json",
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: { input: entryOf(root, name) },
    },
  });
  const own = [...paths].filter((path) => isOwnSource(root, path));
  return Object.fromEntries(
    own.toSorted().map((path) => [relative(root, path).split(sep).join("/"), hashOf(path)]),
  );
}

function styleSheetsIn(root, name) {
  const folder = join(root, "packages", name, name === "pages" ? "src" : "pages");
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".css")).map((file) => join(folder, file));
}

function isOwnSource(root, path) {
  return path.startsWith(root) && !path.includes(`${sep}node_modules${sep}`) && existsSync(path);
}

/** Hashed files first, the manifest by a rename, and then previous files go. */
function putInPlace(staging, assets) {
  mkdirSync(assets, { recursive: true });
  const built = readdirSync(staging);
  for (const file of built) {
    if (file === "manifest.json") continue;
    cpSync(join(staging, file), join(assets, file), { recursive: true });
  }
  renameSync(join(staging, "manifest.json"), join(assets, "manifest.json"));
  for (const file of readdirSync(assets)) {
    if (!built.includes(file)) rmSync(join(assets, file), { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildPages().catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
}
