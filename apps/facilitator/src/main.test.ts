import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createPayingFetch } from "@coinslot/client";
import {
  type Devnet,
  devSeedPhrase,
  listen,
  type Program,
  startCompiled,
  startDevnet,
  startProgram,
  startSource,
} from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { createFacilitatorClient, paymentMiddleware } from "@coinslot/express";
import {
  facilitatorSettings,
  readFacilitatorServiceConfiguration,
  type Setting,
} from "@coinslot/hosting";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

const root = fileURLToPath(new URL("..", import.meta.url));

const compiled = useProgram(new URL("./main.ts", import.meta.url));

/** Runs the program with this environment and no other settings; it ends with the test. */
function run(args: readonly string[], env: Record<string, string> = {}): Program {
  const program = startCompiled([compiled(), ...args], { folder: root, env });
  onTestFinished(program.kill);
  return program;
}

async function createDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-facilitator-app-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function readBlock(language: string): Promise<string> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  return new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1] ?? "";
}

const typesOfPurchase = [
  "verify_started",
  "verify_completed",
  "settle_started",
  "settle_completed",
];

function environmentOn(devnet: Devnet): Record<string, string> {
  return {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_SEED_PHRASE: devSeedPhrase,
    FACILITATOR_PORT: "0",
  };
}

/** A shop with a remote facilitator, which listens to its events. */
async function openShop(devnet: Devnet, url: string) {
  const types: string[] = [];
  const app = express();
  const { url: shop, close } = await listen(app);
  onTestFinished(close);
  app.post("/events", express.json(), (request, response) => {
    types.push(request.body.type);
    response.sendStatus(204);
  });
  const { network, rpcUrl, accounts } = devnet;
  const accepts = [
    { scheme: "exact", network, price: "$0.001", payTo: accounts.seller.address },
  ] as const;
  const facilitator = createFacilitatorClient({ url, eventCallback: `${shop}/events` });
  const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
  app.use(gate);
  app.get("/weather", (_request, response) => void response.send("sun"));
  await gate.ready();
  const pay = createPayingFetch({ account: accounts.buyer, rpcUrls: { [network]: rpcUrl } });
  return { types, buy: () => pay(`${shop}/weather`) };
}

// Each of these starts programs, which is slow on a busy machine.
describe("the hosted facilitator", { timeout: 120_000 }, () => {
  it("serves the README's example on a devnet", async () => {
    // From the source, as the package's script starts it.
    const place = { folder: root, env: { FACILITATOR_PORT: "0" } };
    const service = startSource(["src/main.ts", "--devnet"], place);
    onTestFinished(service.kill);
    const [exports] = await service.waitFor(/export[\s\S]*WALLET_PRIVATE_KEY=0x\w{64}/);
    const env = Object.fromEntries(
      [...exports.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value]),
    );

    const answers: string[] = [];
    for (const line of (await readBlock("sh")).trim().split("\n")) {
      const asked = startProgram("sh", ["-c", line], { folder: root, env });
      expect({ line, code: await asked.ended }).toEqual({ line, code: 0 });
      answers.push(asked.stdout());
    }
    const [supported, ready, verified, metrics] = answers;
    expect(supported).toContain('"network":"eip155:9745"');
    expect(ready).toBe('{"status":"ready"}');
    expect(verified).toContain('"invalidReason":"invalid_payload"');
    expect(metrics).toContain("coinslot_facilitator_requests_total");

    const block = await readBlock("js");
    expect(block).toContain("// try.mjs");
    const args = ["--input-type=module", "--eval", block];
    const trial = startSource(args, { folder: root, env });
    expect({ code: await trial.ended, stderr: trial.stderr() }).toEqual({ code: 0, stderr: "" });
    const lines = trial.stdout().trim().split("\n");
    expect(lines).toContain('200 {"forecast":"sun"}');
    const words = lines.map((line) => line.split(" ")[0]);
    expect(words.toSorted()).toEqual(["200", ...typesOfPurchase].toSorted());

    service.child.kill("SIGTERM");
    expect(await service.ended).toBe(0);
    expect(service.stderr()).toBe("");
  });

  it("finishes a settlement on SIGTERM, and exits with 0", async () => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
    const service = run([], {
      ...environmentOn(devnet),
      FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true",
    });
    const [, url = ""] = await service.waitFor(/(http:\/\/127\.0\.0\.1:\d+).*"Serving"/);
    const shop = await openShop(devnet, url);
    await devnet.setAutomine(false);
    const bought = shop.buy();
    await expect
      .poll(() => shop.types, patience)
      .toEqual(expect.arrayContaining(["settle_started"]));
    service.child.kill("SIGTERM");
    await service.waitFor(/"Stopping"/);
    // A broadcast may reach the node after the first block.
    await devnet.setIntervalMining(1);
    expect((await bought).status).toBe(200);
    expect(await service.ended).toBe(0);
    expect(service.stderr()).toBe("");
    expect(service.stdout()).not.toContain("junk");
  });

  it("lists all faults of its settings, and exits with 1", async () => {
    const failed = run([], {
      FACILITATOR_PORT: "eighty",
      COINSLOT_LEDGER: "mysql://a:secret@b",
      FACILITATOR_KEYS: "shop:secret",
    });
    expect(await failed.ended).toBe(1);
    expect(failed.stdout()).toBe("");
    for (const words of [
      "FACILITATOR_PORT: must be a whole number",
      "COINSLOT_LEDGER: is not set, or has an unknown URL",
      "FACILITATOR_KEYS: entry 1 (shop) must have a key",
      "FACILITATOR_SEED_PHRASE: is not set",
    ]) {
      expect(failed.stderr()).toContain(words);
    }
    expect(failed.stderr()).not.toContain("secret");
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("reports a port in use, a database that is away and a wrong chain, and exits with 1", async () => {
    const devnet = await startDevnet({ chainId: 988 });
    onTestFinished(() => devnet.stop());
    const { port } = new URL(devnet.rpcUrl);
    const failed = run([], {
      ...environmentOn(devnet),
      COINSLOT_NETWORK: "eip155:9745",
      COINSLOT_LEDGER: "postgres://user:secret@127.0.0.1:1/coinslot",
      FACILITATOR_PORT: port,
    });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(failed.stderr()).toMatch(/eip155:9745: .*chain 988/);
    expect(failed.stderr()).toMatch(/COINSLOT_LEDGER: .*127\.0\.0\.1:1\/coinslot/);
    expect(failed.stderr()).not.toMatch(/secret|junk| {4}at /);
  });

  it("prints a new key once", async () => {
    const made = run(["new-key", "shop"]);
    expect(await made.ended).toBe(0);
    // Only the hash goes to the file: `new-key shop >> keys` appends an entry.
    expect(made.stdout()).toMatch(/^shop:sha256:[0-9a-f]{64}\n$/);
    expect(made.stderr()).toMatch(/^csf_[\w-]{43}$/m);
    const [key = ""] = /^csf_\S+$/m.exec(made.stderr()) ?? [];
    expect(made.stdout()).toContain(createHash("sha256").update(key).digest("hex"));
  });
});

describe("the README of the hosted facilitator", () => {
  it("lists every setting with its default", async () => {
    const readme = await readFile(join(root, "README.md"), "utf8");
    const rows = readme.split("\n").filter((line) => /^\| `[A-Z]/.test(line));
    const cells = rows.map((row) => row.split("|").map((cell) => cell.trim().replaceAll("`", "")));
    const settings: readonly Setting[] = facilitatorSettings;
    const expected = settings.map(({ name, inFile = "", explanation, defaultValue, isSecret }) => [
      "",
      isSecret ? `${name} 🔒` : name,
      inFile,
      (defaultValue === undefined
        ? explanation
        : `${explanation}. Default ${defaultValue}`
      ).replaceAll("`", ""),
      "",
    ]);
    expect(cells).toEqual(expected);
  });

  it("shows a valid configuration file", async () => {
    const file = join(await createDirectory(), "facilitator.yaml");
    await writeFile(file, await readBlock("yaml"));
    const env = { FACILITATOR_SEED_PHRASE: devSeedPhrase };
    const { facilitator, keys, payTo } = readFacilitatorServiceConfiguration({ env, file });
    expect(facilitator.networks.map(({ network }) => network)).toEqual([
      "eip155:9745",
      "eip155:8453",
    ]);
    expect([keys?.length, payTo?.length]).toEqual([1, 1]);
  });
});
