// Projects that are not set up as ours is: CommonJS, compiled and plain, and Jest.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const program = `
import { createPayingFetch } from "@coinslot/client";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";

const facilitator = createFacilitator({
  networks: [
    { network: "eip155:9745", rpcUrls: [process.env.RPC_URL], relayer: process.env.RELAYER_KEY },
  ],
  ledger: "sqlite::memory:",
});
paymentMiddleware(
  {
    "GET /weather": {
      accepts: { scheme: "exact", network: "eip155:9745", price: "$0.001", payTo: process.env.PAY_TO },
    },
  },
  facilitator,
);
void facilitator.ready().catch(() => undefined);
void facilitator.close().then(() => console.log("sells", typeof createPayingFetch));
`;
const environment = {
  ...process.env,
  RPC_URL: "http://127.0.0.1:9",
  RELAYER_KEY: `0x${"1".repeat(64)}`,
  PAY_TO: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
};

/**
 * Compiles and runs the same seller in each kind of project, in a folder where the packages are
 * installed.
 *
 * @param {{ installed: string }} options the folder with node_modules
 * @returns {Promise<string>} the kinds that work
 * @throws with the compiler's, or the program's, output
 */
export async function tryConsumers({ installed }) {
  await run(
    "npm",
    [
      "install",
      "--no-audit",
      "--no-fund",
      "typescript@5.9",
      "@types/express@5",
      "@types/node@20",
      "jest@30",
    ],
    { cwd: installed },
  );
  const compiled = [
    // The oldest resolution, without exports; and the README's set-up for a CommonJS project.
    { name: "node10", options: { module: "commonjs", moduleResolution: "node10" } },
    { name: "commonjs", options: settingsInReadme() },
    { name: "strict", options: { module: "nodenext", skipLibCheck: false } },
  ];
  for (const { name, options } of compiled) await compileAndRun({ installed, name, options });
  await runPlain({ installed });
  await runJest({ installed });
  return `${compiled.map(({ name }) => name).join(", ")}, require() and Jest work`;
}

/**
 * Installs the packages beside Express 4 and its types, as an application of that version has them.
 * Compiles and runs a seller there.
 *
 * @param {{ folder: string, tarballs: string[] }} options
 * @returns {Promise<string>} the installed versions of Express and its types
 * @throws with the output of npm, the compiler or the program
 */
export async function tryExpress4({ folder, tarballs }) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  const tools = ["typescript@5.9", "@types/node@20", "viem"];
  const versions = ["express@4", "@types/express@4"];
  const install = ["install", "--no-audit", "--no-fund", ...versions, ...tools, ...tarballs];
  await runOrThrow("npm", install, folder);
  const options = { module: "nodenext", skipLibCheck: false };
  await compileAndRun({ installed: folder, name: "express4", options, source: mounted() });
  return ["express", "@types/express"].map((name) => versionOf(folder, name)).join(", ");
}

/** The seller as middleware of an application, beside a router of the hosted services. */
function mounted() {
  const gate = "\nconst gate: RequestHandler = paymentMiddleware(";
  return `import express, { type RequestHandler } from "express";
import { probeRouter } from "@coinslot/hosting";
${program.replace("\npaymentMiddleware(", gate)}
const readReadiness = async () => ({ status: "ready" }) as const;
const readMetrics = async () => ({ contentType: "text/plain", text: "" });
express().use(gate).use(probeRouter({ readReadiness, readMetrics }));
`;
}

function versionOf(folder, name) {
  const file = join(folder, "node_modules", name, "package.json");
  const { version } = JSON.parse(readFileSync(file, "utf8"));
  if (!version.startsWith("4.")) throw new Error(`${name} ${version} was installed, and not 4`);
  return `${name} ${version}`;
}

async function compileAndRun({ installed, name, options, source = program }) {
  const folder = join(installed, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');
  writeFileSync(join(folder, "seller.ts"), source);
  const compilerOptions = {
    target: "es2022",
    strict: true,
    skipLibCheck: true,
    esModuleInterop: true,
    types: ["node"],
    ...options,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  await runOrThrow(join(installed, "node_modules/.bin/tsc"), [], folder);
  await expectSale(["seller.js"], folder);
}

async function runPlain({ installed }) {
  const folder = join(installed, "plain");
  mkdirSync(folder);
  const required = program.replaceAll(/import (\{.*\}) from (".*");/g, "const $1 = require($2);");
  writeFileSync(join(folder, "seller.cjs"), required);
  await expectSale(["seller.cjs"], folder);
}

async function runJest({ installed }) {
  const folder = join(installed, "jest");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ jest: { testMatch: ["**/*.test.mjs"] } }),
  );
  const test = program.replace(/void facilitator\.ready[\s\S]*/, "");
  writeFileSync(
    join(folder, "seller.test.mjs"),
    `${test}\ntest("sells", () => facilitator.close());\nvoid facilitator.ready().catch(() => undefined);\n`,
  );
  await runOrThrow(join(installed, "node_modules/.bin/jest"), [], folder, {
    NODE_OPTIONS: "--experimental-vm-modules",
  });
}

async function expectSale(args, cwd) {
  const { stdout } = await runOrThrow("node", args, cwd);
  if (!stdout.includes("sells function")) throw new Error(`${args.join(" ")} printed:\n${stdout}`);
}

async function runOrThrow(file, args, cwd, env = {}) {
  try {
    return await run(file, args, { cwd, env: { ...environment, ...env } });
  } catch (error) {
    throw new Error(`${file} in ${cwd}:\n${error.stdout}${error.stderr}`);
  }
}

/** The compiler options that the package's README gives to a CommonJS project. */
function settingsInReadme() {
  const readme = readFileSync("packages/express/README.md", "utf8");
  const block = /```json\n(\{\n {2}"compilerOptions"[\s\S]*?)```/.exec(readme)?.[1];
  if (block === undefined) throw new Error("packages/express/README.md has no compilerOptions.");
  return JSON.parse(block).compilerOptions;
}
