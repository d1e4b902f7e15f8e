// Looks at the packages as those who install them will: asks publint and attw about each tarball,
// then installs all of them into an empty folder, lets the README's seller sell to its buyer, and
// tries the coinslot command.
//   node scripts/check-packages.mjs [--built]      the packages are built first unless they are
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { packPackages } from "./pack.mjs";
import { tryCommand } from "./try-command.mjs";
import { tryReadme } from "./try-readme.mjs";

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
  const installed = join(folder, "newcomer");
  console.log(`README: ${await tryReadme({ folder: installed, tarballs })}`);
  console.log(`coinslot: ${await tryCommand({ installed, empty: join(folder, "empty") })}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(isWell ? 0 : 1);

/** @returns what the tool says when it finds fault, else nothing. */
async function complaintOf(tool, args) {
  try {
    await run(join("node_modules", ".bin", tool), args);
    return "";
  } catch (error) {
    return `${error.stdout ?? ""}${error.stderr ?? ""}`;
  }
}
