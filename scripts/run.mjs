// The door to the project on a machine with only Node and npm: installs missing packages, then runs
// a task. Plain JavaScript, because it runs before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const stampFile = join(root, "node_modules", ".installed-from");

const typescript = [process.execPath, "--import", "tsx", "--conditions=source"];
const tasks = {
  start: [...typescript, "scripts/start.ts"],
  demo: [...typescript, "scripts/demo.ts"],
  devnet: [...typescript, "packages/devnet/src/main.ts"],
  indexer: [...typescript, "apps/indexer/src/main.ts"],
  facilitator: [...typescript, "apps/facilitator/src/main.ts"],
  "paid-indexer": [...typescript, "apps/paid-indexer/src/main.ts"],
  coinslot: [...typescript, "packages/cli/src/main.ts"],
  balance: [...typescript, "scripts/balance.ts"],
  bench: [...typescript, "bench/main.ts"],
  pack: [process.execPath, "scripts/pack.mjs"],
  "raise-version": [process.execPath, "scripts/raise-version.mjs"],
  release: [process.execPath, "scripts/release.mjs"],
  pages: [process.execPath, "scripts/pages.mjs"],
  pictures: [...typescript, "scripts/pictures.ts"],
  site: [...typescript, "site/main.ts"],
  "site:browser": [...typescript, "site/check-in-browser.ts"],
  test: [process.execPath, "node_modules/vitest/vitest.mjs", "run"],
};

const [task = "", ...args] = process.argv.slice(2);
if (task === "install") {
  requireNode();
  install();
  process.exit(0);
}
if (!Object.hasOwn(tasks, task)) {
  fail(`Unknown task "${task}". There are: ${Object.keys(tasks).join(", ")}.`);
}
requireNode();
install();
if (task !== "pages") await buildPages();
if (task === "test" && args.every((arg) => arg.startsWith("-"))) installProxies();
start([...tasks[task], ...args]);

function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  fail(`Node ${process.versions.node} is too old: Coinslot needs Node 20.19 or newer.`);
}

function install() {
  const wanted = createHash("sha256")
    .update(readFileSync(join(root, "pnpm-lock.yaml")))
    .update(readFileSync(join(root, "pnpm-workspace.yaml")))
    .digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  const pnpm = manifest.packageManager.split("+")[0];
  console.log(`Installing dependencies with ${pnpm} (once, about half a minute) ...`);
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const status = run([
    npm,
    "exec",
    "--yes",
    pnpm,
    "--",
    "install",
    "--frozen-lockfile",
    "--reporter=append-only",
  ]);
  if (status !== 0) {
    fail(
      "Installing failed; its output is above. It needs npm on the PATH and access to the npm registry.",
    );
  }
  writeFileSync(stampFile, wanted);
}

/** Pages that programs serve, where their sources have changed. */
async function buildPages() {
  const pages = await import("./pages.mjs");
  await pages.buildPages().catch((error) => fail(`Building pages failed: ${error.message}`));
}

/** Tests of documented proxies need nginx and Caddy. Without them, those tests fail by name. */
function installProxies() {
  if (process.platform === "win32") return;
  spawnSync(join(root, "scripts/install-proxies.sh"), { stdio: ["ignore", "ignore", "inherit"] });
}

/** Installs silently, unless it fails. */
function run([program, ...programArgs]) {
  const result = spawnSync(program, programArgs, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, npm_config_loglevel: "error" },
  });
  if (result.error) fail(`${program} could not be started: ${result.error.message}`);
  if (result.status !== 0) process.stderr.write(`${result.stdout}\n${result.stderr}`);
  return result.status ?? 1;
}

/** Runs the task in the foreground, and ends as it ends. */
function start([program, ...programArgs]) {
  const child = spawn(program, programArgs, { cwd: root, stdio: "inherit" });
  // A terminal sends Ctrl-C to both processes; a kill of this process by its id means the task.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("error", (error) => fail(`${program} could not be started: ${error.message}`));
  child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
