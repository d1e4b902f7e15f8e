// The programs of examples/, each started as in its README, beside the packed packages.
import { execFile } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./free-port.mjs";
import { readExports, startDevnet } from "./start-devnet.mjs";
import { start } from "./start-program.mjs";

const run = promisify(execFile);

/**
 * The purchase and the expected content of each seller's buyer. `buy` is bought with by all of
 * them.
 */
const sellers = {
  sell: { path: "/weather/hamburg", answer: /"city":"hamburg","forecast":"sun","soldTo":"0x/ },
  "remote-facilitator": { path: "/weather", answer: /"forecast":"sun"/, beside: startFacilitator },
  stream: { path: "/ticks", answer: /"tick":1,"transaction":"0x.*"tick":10,/s },
  "behind-proxy": { path: "/weather", answer: /"forecast":"sun"/, beside: startNginx },
};

/**
 * Runs each seller of examples/, and buys from it by the example that buys.
 *
 * @param {{ installed: string }} options the folder with node_modules
 * @returns {Promise<string>} the examples that work
 * @throws with the programs' output where one does not
 */
export async function tryExamples({ installed }) {
  const folder = join(installed, "examples");
  cpSync("examples", folder, {
    recursive: true,
    filter: (path) => !path.includes("node_modules") && !path.endsWith("package.json"),
  });
  const names = readdirSync("examples", { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map(({ name }) => name);
  const untried = names.filter((name) => name !== "buy" && !Object.hasOwn(sellers, name));
  if (untried.length > 0) throw new Error(`No test runs examples/${untried.join(", examples/")}.`);

  const timeout = AbortSignal.timeout(180_000);
  const devnet = await startDevnet({ timeout });
  try {
    for (const [name, seller] of Object.entries(sellers)) {
      const env = { ...process.env, ...devnet.environment, COINSLOT_LEDGER: "sqlite::memory:" };
      await trySeller({ name, ...seller, folder, installed, env, timeout });
    }
  } finally {
    await devnet.stop();
  }
  return `${names.join(", ")} work`;
}

async function trySeller({ name, path, answer, beside, folder, installed, env, timeout }) {
  const port = await freePort();
  const cwd = join(folder, name);
  const extra = (await beside?.({ cwd, installed, port, env, timeout })) ?? { environment: {} };
  const environment = { ...env, ...extra.environment, PORT: String(port) };
  try {
    const seller = start("node", { args: ["sell.mjs"], cwd, env: environment, timeout });
    try {
      await seller.prints(/ costs /);
      const url = `${environment.COINSLOT_PUBLIC_URL ?? `http://localhost:${port}`}${path}`;
      await expectOffer(url);
      const { stdout, stderr } = await run("node", ["buy.mjs", url], {
        cwd: join(folder, "buy"),
        env: environment,
        signal: timeout,
      });
      if (!answer.test(stdout) || !/^200 0x[0-9a-f]{64}$/m.test(stderr)) {
        throw new Error(`examples/${name}: the buyer printed\n${stdout}${stderr}`);
      }
    } finally {
      await seller.stop();
    }
  } finally {
    await extra.stop?.();
  }
}

/** @throws unless an unpaid request gets an offer that names the URL that was asked */
async function expectOffer(url) {
  const response = await fetch(url);
  const offer = Buffer.from(response.headers.get("payment-required") ?? "", "base64").toString();
  if (response.status !== 402 || !offer.includes(`"url":"${url}"`)) {
    throw new Error(`${url} answered ${response.status} with the offer ${offer}`);
  }
}

/** The hosted facilitator, with a chain of its own. */
async function startFacilitator({ cwd, installed, env, timeout }) {
  const facilitator = start(join(installed, "node_modules/.bin/coinslot"), {
    args: ["facilitator", "--devnet"],
    cwd,
    env: { ...env, FACILITATOR_PORT: String(await freePort()) },
    timeout,
  });
  try {
    const printed = await facilitator.prints(/^ *export WALLET_PRIVATE_KEY=\S+$/m);
    return { environment: readExports(printed), stop: facilitator.stop };
  } catch (error) {
    await facilitator.stop();
    throw error;
  }
}

/** nginx by the example's own file, on free ports. */
async function startNginx({ cwd, port, env, timeout }) {
  const publicPort = await freePort();
  const file = join(cwd, "nginx.conf");
  const configuration = readFileSync(file, "utf8");
  writeFileSync(
    file,
    configuration.replaceAll("4021", String(port)).replaceAll("8080", String(publicPort)),
  );
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "coinslot/proxies");
  const PATH = [env.PATH, "/usr/sbin", join(cache, "usr/sbin")].join(delimiter);
  const nginx = start("nginx", {
    args: ["-p", ".", "-e", "stderr", "-c", "nginx.conf"],
    cwd,
    env: { ...env, PATH },
    timeout,
  });
  try {
    await nginx.prints(/start worker process/);
  } catch (error) {
    await nginx.stop();
    throw error;
  }
  const url = `http://localhost:${publicPort}`;
  return { environment: { COINSLOT_PUBLIC_URL: url }, stop: nginx.stop };
}
