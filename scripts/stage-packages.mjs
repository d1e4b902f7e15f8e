// The public packages as folders, each exactly as it is published.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix, resolve } from "node:path";
import { replaceLinks } from "./markdown-links.mjs";

/**
 * Stages every public package: its files, a manifest with the publication's links, and a README
 * with links that work elsewhere.
 *
 * @param {string} folder becomes the parent of the packages' folders; its previous content is
 * removed
 * @param {{ publication: ReturnType<typeof import("./publication.mjs").readPublication>, isBuilt?:
 * boolean }} options
 *   `isBuilt`: leaves `dist` as it is
 * @returns {{ name: string, version: string, folder: string }[]} dependencies before their
 * dependents
 */
export function stagePackages(folder, { publication, isBuilt = false }) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  if (!isBuilt) {
    execFileSync(process.execPath, ["scripts/pages.mjs"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    execFileSync(join("node_modules", ".bin", "tsdown"), {
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  const packed = mkdtempSync(join(tmpdir(), "coinslot-packed-"));
  try {
    const sources = publicPackages();
    // pnpm replaces what only a workspace understands: `workspace:`, `catalog:` and the source
    // exports.
    runPnpm([
      "--recursive",
      ...sources.map(({ name }) => `--filter=${name}`),
      "pack",
      "--pack-destination",
      packed,
    ]);
    const staged = sources.map((source) => stagePackage({ source, packed, folder, publication }));
    return inDependencyOrder(staged);
  } finally {
    rmSync(packed, { recursive: true, force: true });
  }
}

function publicPackages() {
  return readdirSync("packages")
    .map((name) => {
      const directory = `packages/${name}`;
      return { directory, ...JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) };
    })
    .filter((manifest) => manifest.private !== true);
}

function runPnpm(args) {
  const { packageManager } = JSON.parse(readFileSync("package.json", "utf8"));
  const pnpm = ["exec", "--yes", packageManager.split("+")[0], "--"];
  execFileSync("npm", [...pnpm, ...args], { stdio: ["ignore", "ignore", "inherit"] });
}

function stagePackage({ source, packed, folder, publication }) {
  const { name, version, directory } = source;
  const target = resolve(folder, name.slice(name.indexOf("/") + 1));
  mkdirSync(target);
  const tarball = `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
  execFileSync("tar", ["-xzf", join(packed, tarball), "-C", target, "--strip-components=1"]);

  const { scripts: _scripts, devDependencies: _tools, ...manifest } = readManifest(target);
  const published = {
    ...manifest,
    homepage: publication.homepage,
    repository: { type: "git", url: `git+${publication.repository}.git`, directory },
    bugs: { url: publication.bugs },
  };
  writeFileSync(join(target, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  const readme = join(target, "README.md");
  writeFileSync(readme, absoluteLinks(readFileSync(readme, "utf8"), { directory, publication }));
  return { name, version, folder: target };
}

/** A registry shows a README without the repository, so links to its files need full URLs. */
function absoluteLinks(markdown, { directory, publication }) {
  return replaceLinks(markdown, (target) => {
    const [path, anchor] = target.split("#");
    const file = posix.join(directory, path);
    return `${publication.repository}/blob/HEAD/${file}${anchor === undefined ? "" : `#${anchor}`}`;
  });
}

function inDependencyOrder(staged) {
  const byName = new Map(staged.map((each) => [each.name, each]));
  const ordered = new Set();
  const visit = (each) => {
    const { dependencies, peerDependencies } = readManifest(each.folder);
    for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
      const needed = byName.get(name);
      if (needed !== undefined) visit(needed);
    }
    ordered.add(each);
  };
  for (const each of staged) visit(each);
  return [...ordered];
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}
