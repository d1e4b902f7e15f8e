// require() of every package, from a CommonJS application.
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Requires every package from a CommonJS file, and calls nothing.
 *
 * @param {{ installed: string, names: readonly string[], binaries?: string }} options
 *   `installed`: folder with node_modules. `binaries`: folder of another version of Node
 * @returns {Promise<string>} the version of Node on which it works
 * @throws where a package cannot be required, or Node warns
 */
export async function tryRequire({ installed, names, binaries }) {
  const folder = join(installed, "required");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');
  const lines = names.map(
    (name) =>
      `if (Object.keys(require(${JSON.stringify(name)})).length === 0) throw ${JSON.stringify(name)};`,
  );
  writeFileSync(
    join(folder, "application.js"),
    `${lines.join("\n")}\nconsole.log(process.version);\n`,
  );
  const path = [binaries, process.env.PATH].filter((part) => part !== undefined).join(delimiter);
  const { stdout, stderr } = await run("node", ["application.js"], {
    cwd: folder,
    env: { ...process.env, PATH: path },
  });
  if (stderr !== "") throw new Error(`Node ${stdout.trim()} warns of require():\n${stderr}`);
  return `${names.length} packages on Node ${stdout.trim()}`;
}
