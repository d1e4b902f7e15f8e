// Looks at the packages as those who install them will: asks publint and attw about each tarball,
// then installs all of them into empty folders, with the newest and the oldest dependencies that
// they take, lets the README's seller sell to its buyer on each version of Node, tries the coinslot
// command, the examples, and projects in CommonJS.
//   node scripts/check-packages.mjs [--built]      the packages are built first unless they are
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { installNode, testedNodes } from "./node-binary.mjs";
import { packPackages } from "./pack.mjs";
import { tryCommand } from "./try-command.mjs";
import { tryConsumers } from "./try-consumers.mjs";
import { tryExamples } from "./try-examples.mjs";
import { installReadme, tryReadme } from "./try-readme.mjs";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "coinslot-packages-"));
let isWell = true;
try {
  const isBuilt = process.argv.includes("--built");
  const tarballs = packPackages(join(folder, "packed"), { isBuilt });
  for (const tarball of tarballs) {
    const complaints = await Promise.all([
      complaintOf("publint", [tarball, "--strict"]),
      complaintOf("attw", [tarball, "--profile", "esm-only", "--no-emoji"]),
    ]);
    const said = complaints.filter((complaint) => complaint !== "");
    console.log(
      `${basename(tarball)}: ${said.length === 0 ? "well" : `FAILED\n${said.join("\n")}`}`,
    );
    isWell &&= said.length === 0;
  }
  const newest = join(folder, "newest");
  await installReadme({ folder: newest, tarballs });
  console.log(`one copy of each: ${await countCopies(newest)}`);
  console.log(`README: ${await tryReadme({ folder: newest })}`);
  for (const version of testedNodes) {
    await tryReadme({ folder: newest, binaries: await installNode(version) });
    console.log(`README on Node ${version}: well`);
  }
  console.log(`coinslot: ${await tryCommand({ installed: newest, empty: join(folder, "empty") })}`);
  console.log(`examples: ${await tryExamples({ installed: newest })}`);
  const oldest = join(folder, "oldest");
  const overrides = await oldestVersions(tarballs);
  await installReadme({ folder: oldest, tarballs, overrides });
  await tryReadme({ folder: oldest });
  console.log(`README with ${JSON.stringify(overrides)}: well`);
  console.log(`consumers: ${await tryConsumers({ installed: newest })}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(isWell ? 0 : 1);

/** The lower end of every range that the packages declare for what is not ours. */
async function oldestVersions(tarballs) {
  const oldest = {};
  for (const tarball of tarballs) {
    const { stdout } = await run("tar", ["-xOf", tarball, "package/package.json"]);
    const { dependencies, peerDependencies } = JSON.parse(stdout);
    for (const [name, range] of Object.entries({ ...dependencies, ...peerDependencies })) {
      if (name.startsWith("@coinslot/") || name === "express" || name.startsWith("@types/"))
        continue;
      oldest[name] = /\d+\.\d+\.\d+/.exec(range)[0];
    }
  }
  return oldest;
}

/** @throws where an ordinary install has two copies of what is large, or has types that cross packages */
async function countCopies(folder) {
  const counted = [];
  for (const name of ["viem", "zod", "kysely", "express"]) {
    const { stdout } = await run("npm", ["ls", name, "--all", "--parseable"], { cwd: folder });
    const copies = new Set(stdout.split("\n").filter((line) => line.endsWith(`/${name}`)));
    if (copies.size !== 1) throw new Error(`${copies.size} copies of ${name}:\n${stdout}`);
    counted.push(name);
  }
  return counted.join(", ");
}

/** @returns what the tool says when it finds fault, else nothing. */
async function complaintOf(tool, args) {
  try {
    await run(join("node_modules", ".bin", tool), args);
    return "";
  } catch (error) {
    return `${error.stdout ?? ""}${error.stderr ?? ""}`;
  }
}
