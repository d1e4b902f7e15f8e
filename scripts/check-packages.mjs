// Checks the packages as they will be installed:
//   - publint, attw and a dry run of publishing, for each
//   - all of them in an empty folder: sizes, one copy of what they share, the README's seller and buyer,
//     the coinslot command, require() from CommonJS, and the examples
//   - with --all also other versions of Node, the oldest dependencies, compilers, Jest, and Express 4
//
//   node scripts/check-packages.mjs [--built] [--all]      builds them first unless they are built
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { replaceLinks } from "./markdown-links.mjs";
import { installNode, testedNodes } from "./node-binary.mjs";
import { packStaged } from "./pack.mjs";
import { packageComplaints } from "./package-complaints.mjs";
import { measurePackages } from "./package-sizes.mjs";
import { publicationOrPlaceholder } from "./publication.mjs";
import { publishStaged } from "./publish-staged.mjs";
import { stagePackages } from "./stage-packages.mjs";
import { tryCommand } from "./try-command.mjs";
import { tryConsumers, tryExpress4 } from "./try-consumers.mjs";
import { tryExamples } from "./try-examples.mjs";
import { installReadme, tryReadme } from "./try-readme.mjs";
import { tryRequire } from "./try-require.mjs";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "coinslot-packages-"));
const faults = [];
try {
  const [isBuilt, isWhole] = ["--built", "--all"].map((option) => process.argv.includes(option));
  const publication = publicationOrPlaceholder();
  const staged = stagePackages(join(folder, "staged"), { publication, isBuilt });
  for (const each of staged) checkStaged(each);
  const tarballs = packStaged(staged, join(folder, "packed"));
  for (const tarball of tarballs) faults.push(...(await packageComplaints(tarball)));
  const names = staged.map(({ name }) => name);

  const newest = join(folder, "newest");
  await installReadme({ folder: newest, tarballs });
  const sizes = measurePackages(newest, names);
  console.log(sizes.lines.join("\n"));
  faults.push(...sizes.faults);
  console.log(`one copy of each: ${await countCopies(newest)}`);
  console.log(`README: ${await tryReadme({ folder: newest })}`);
  console.log(`coinslot: ${await tryCommand({ installed: newest, empty: join(folder, "empty") })}`);
  console.log(`require(): ${await tryRequire({ installed: newest, names })}`);
  console.log(`examples: ${await tryExamples({ installed: newest })}`);
  if (isWhole) await checkEverywhere({ newest, tarballs, staged });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const fault of faults) console.error(`FAILED: ${fault}`);
process.exit(faults.length === 0 ? 0 : 1);

function checkStaged(each) {
  const readme = readFileSync(join(each.folder, "README.md"), "utf8");
  replaceLinks(readme, (target) => {
    faults.push(`${each.name}: README.md: a registry page cannot follow ${target}`);
    return target;
  });
  console.log(publishStaged(each, { isDryRun: true }));
}

async function checkEverywhere({ newest, tarballs, staged }) {
  const names = staged.map(({ name }) => name);
  for (const version of testedNodes) {
    const binaries = await installNode(version);
    await tryReadme({ folder: newest, binaries });
    await tryRequire({ installed: newest, names, binaries });
    console.log(`README and require() on Node ${version}: ok`);
  }
  const oldest = join(folder, "oldest");
  const overrides = oldestVersions(staged);
  await installReadme({ folder: oldest, tarballs, overrides });
  await tryReadme({ folder: oldest });
  console.log(`README with ${JSON.stringify(overrides)}: ok`);
  console.log(`consumers: ${await tryConsumers({ installed: newest })}`);
  const express4 = join(folder, "express4");
  console.log(`Express 4: ${await tryExpress4({ folder: express4, tarballs })}`);
}

/** The lower end of every range that the packages declare for dependencies that are not ours. */
function oldestVersions(staged) {
  const oldest = {};
  for (const { folder: source } of staged) {
    const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
    const ranges = { ...manifest.dependencies, ...manifest.peerDependencies };
    for (const [name, range] of Object.entries(ranges)) {
      if (name.startsWith("@coinslot/") || name === "express" || name.startsWith("@types/"))
        continue;
      oldest[name] = /\d+\.\d+\.\d+/.exec(range)[0];
    }
  }
  return oldest;
}

/**
 * @throws where an install has two copies of a large package, or of one whose types cross packages
 */
async function countCopies(installed) {
  const counted = [];
  for (const name of ["viem", "zod", "kysely", "express"]) {
    const { stdout } = await run("npm", ["ls", name, "--all", "--parseable"], { cwd: installed });
    const copies = new Set(stdout.split("\n").filter((line) => line.endsWith(`/${name}`)));
    if (copies.size !== 1) throw new Error(`${copies.size} copies of ${name}:\n${stdout}`);
    counted.push(name);
  }
  return counted.join(", ");
}
