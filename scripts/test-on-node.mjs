// Runs the tests on another version of Node than the machine's.
//   node scripts/test-on-node.mjs 22 [arguments of vitest]
import { spawn } from "node:child_process";
import { delimiter } from "node:path";
import { installNode, testedNodes } from "./node-binary.mjs";

const [version, ...args] = process.argv.slice(2);
if (version === undefined) {
  console.error(`Missing argument: a version of Node, as ${testedNodes.join(", ")}.`);
  process.exit(2);
}
const binaries = await installNode(version);
const child = spawn("node", ["scripts/run.mjs", "test", ...args], {
  stdio: "inherit",
  env: { ...process.env, PATH: `${binaries}${delimiter}${process.env.PATH}` },
});
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
