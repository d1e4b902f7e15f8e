// Turns the files of .changeset/ into the next version of all public packages, and into a section
// of CHANGELOG.md. node scripts/raise-version.mjs in the repository's folder, on the branch main
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

/** The sizes of a change, the largest first, with their headings. */
const sizes = { major: "Breaking", minor: "New", patch: "Fixed" };

const changesets = readChangesets();
if (changesets.length === 0) fail("There is no changeset: `npx changeset` writes one.");
const manifests = readPublicManifests();
const [version] = manifests.map(({ manifest }) => manifest.version);
const size = Object.keys(sizes).find((each) =>
  changesets.some((change) => sizeOf(change) === each),
);
if (size === undefined) fail("The changesets name no public package.");
const next = raise(version, size);

for (const { path, text } of manifests) {
  writeFileSync(path, text.replace(/"version": ".*"/, `"version": "${next}"`));
}
const changelog = readFileSync("CHANGELOG.md", "utf8");
const [head, ...sections] = changelog.split(/^(?=## )/m);
writeFileSync("CHANGELOG.md", [head, describe(next), ...sections].join(""));
for (const { id } of changesets) rmSync(join(".changeset", `${id}.md`));
console.log(`${version} -> ${next}`);

/** The checks of changesets itself: it refuses unparsable files and unknown packages. */
function readChangesets() {
  const command = createRequire(import.meta.url).resolve("@changesets/cli/bin.js");
  const folder = mkdtempSync(join(tmpdir(), "coinslot-changesets-"));
  try {
    const plan = join(folder, "plan.json");
    // The command takes a path from the repository's folder.
    execFileSync(process.execPath, [command, "status", `--output=${relative(".", plan)}`], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    return JSON.parse(readFileSync(plan, "utf8")).changesets;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readPublicManifests() {
  return readdirSync("packages")
    .map((name) => join("packages", name, "package.json"))
    .map((path) => ({ path, text: readFileSync(path, "utf8") }))
    .map((file) => ({ ...file, manifest: JSON.parse(file.text) }))
    .filter(({ manifest }) => manifest.private !== true);
}

function sizeOf({ releases }) {
  return Object.keys(sizes).find((size) => releases.some(({ type }) => type === size));
}

function raise(version, size) {
  const [major, minor, patch] = version.split(".").map(Number);
  if (size === "major") return `${major + 1}.0.0`;
  return size === "minor" ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`;
}

/** The section of a version: its changes by size, each with its packages. */
function describe(version) {
  const day = new Date().toISOString().slice(0, 10);
  const parts = Object.entries(sizes).flatMap(([size, heading]) => {
    const items = changesets.filter((change) => sizeOf(change) === size).map(describeChange);
    return items.length === 0 ? [] : [`### ${heading}\n\n${items.join("\n")}\n\n`];
  });
  return `## ${version} (${day})\n\n${parts.join("")}`;
}

function describeChange({ releases, summary }) {
  const names = releases.map(({ name }) => name.replace("@coinslot/", "")).join(", ");
  return `- **${names}**: ${summary.trim().replaceAll("\n", "\n  ")}`;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
