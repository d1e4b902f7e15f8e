// Publishes every public package whose version the registry does not have yet.
//   npm run release                  publishes
//   npm run release -- --dry-run     shows what would be published
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPublication } from "./publication.mjs";
import { publishStaged } from "./publish-staged.mjs";
import { stagePackages } from "./stage-packages.mjs";

const isDryRun = process.argv.includes("--dry-run");
const publication = publicationOrExit();
const folder = mkdtempSync(join(tmpdir(), "coinslot-release-"));
try {
  for (const each of stagePackages(folder, { publication })) {
    if (isPublished(each)) console.log(`${each.name}@${each.version}: published before`);
    else console.log(publishStaged(each, { isDryRun }));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function publicationOrExit() {
  try {
    return readPublication();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

function isPublished({ name, version }) {
  try {
    const args = ["view", `${name}@${version}`, "version"];
    return execFileSync("npm", args, { encoding: "utf8", stdio: "pipe" }).trim() === version;
  } catch (error) {
    if (String(error.stderr).includes("E404")) return false;
    throw error;
  }
}
