import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  listen,
  type Program,
  startCompiled,
  startDevnet,
  startProgram,
  startSource,
} from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import supertest from "supertest";
import { describe, expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

const compiled = useProgram(new URL("./main.ts", import.meta.url));

/** Runs the program with this environment and no other settings; it ends with the test. */
function run(args: readonly string[], env: Record<string, string> = {}): Program {
  const program = startCompiled([compiled(), ...args], { folder: root, env });
  onTestFinished(program.kill);
  return program;
}

async function createDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-indexer-app-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function urlOf(service: Program): Promise<string> {
  const pattern = /(http:\/\/127\.0\.0\.1:\d+)(?:\/docs|","msg":"Serving)/;
  const [, url = ""] = await service.waitFor(pattern);
  return url;
}

// Each of these starts programs, which is slow on a busy machine.
describe("the indexing service", { timeout: 120_000 }, () => {
  it("follows a devnet with one command, and answers the README's requests", async () => {
    // From the source, as the package's script starts it.
    const env = { INDEXER_PORT: "0" };
    const service = startSource(["src/main.ts", "--devnet"], { folder: root, env });
    onTestFinished(service.kill);
    const url = await urlOf(service);
    const readme = await readFile(join(root, "README.md"), "utf8");
    const lines = /```sh\n(curl[\s\S]*?)```/.exec(readme)?.[1]?.trim().split("\n") ?? [];
    expect(lines).toHaveLength(7);
    const ask = async (line: string) => {
      const args = ["-c", line.replace("http://localhost:8080", url)];
      const asked = startProgram("sh", args, { folder: root });
      const code = await asked.ended;
      // 28 is curl's exit code after its time limit.
      expect({ line, code }).toEqual({ line, code: line.includes("-N") ? 28 : 0 });
      return asked.stdout();
    };
    // It serves before it has read the chain.
    const [, list = ""] = lines;
    await expect.poll(async () => JSON.parse(await ask(list)).transfers.length).toBe(3);
    const answers: string[] = [];
    for (const line of lines) answers.push(await ask(line));
    const [chains, transfers, balance, batch, csv, stream, ready] = answers;
    expect(chains).toBe('{"chains":[{"name":"devnet","tokens":["usdt"]}]}');
    expect(JSON.parse(transfers ?? "").transfers).toHaveLength(3);
    expect(JSON.parse(balance ?? "").tokenBalance.amount).toMatch(/^9999[0-9]{5}$/);
    expect(JSON.parse(batch ?? "")).toHaveLength(1);
    expect(csv?.split("\r\n").length).toBeGreaterThan(15);
    expect(stream).toContain("event: transfer");
    expect(ready).toContain('"status":"ready"');

    service.child.kill("SIGTERM");
    expect(await service.ended).toBe(0);
    expect(service.stderr()).toBe("");
  });

  it("follows a configured chain, accepts a key made beside it, and stops gracefully", async () => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const env = {
      INDEXER_CHAINS: "plasma",
      INDEXER_RPC_URLS_PLASMA: devnet.rpcUrl,
      INDEXER_DATABASE: `sqlite:${join(await createDirectory(), "indexer.db")}`,
      INDEXER_PORT: "0",
    };
    const service = run([], env);
    const url = await urlOf(service);
    const create = run(
      ["keys", "create", "--owner", "me", "--max", "1000", "--time-window", "1s"],
      env,
    );
    expect(await create.ended).toBe(0);
    const key = create.stdout().trim();
    const headers = { "x-api-key": key };
    await supertest(url).get("/api/v1/chains").set(headers).expect(200);

    const stream = await fetch(
      `${url}/api/v1/plasma/usdt/${devnet.accounts.buyer.address}/token-transfers`,
      { headers: { ...headers, accept: "text/event-stream" } },
    );
    expect(stream.status).toBe(200);
    const list = run(["keys", "list", "--owner", "me"], env);
    expect(await list.ended).toBe(0);
    const [hashedKey = ""] = list.stdout().split(" ");
    expect(list.stdout()).not.toContain(key);
    expect(await run(["keys", "revoke", hashedKey], env).ended).toBe(0);
    await supertest(url).get("/api/v1/chains").set(headers).expect(401);

    service.child.kill("SIGTERM");
    expect(await service.ended).toBe(0);
    // The stream has ended without an error.
    expect(await stream.text()).toContain("retry:");
  });

  it("lists all faults of its settings, and exits with 1", async () => {
    const failed = run([], { INDEXER_PORT: "eighty", INDEXER_DATABASE: "mysql://a:secret@b" });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toContain("INDEXER_PORT: must be a port");
    expect(failed.stderr()).toContain("INDEXER_DATABASE: must begin with");
    expect(failed.stderr()).toContain("Set INDEXER_CHAINS");
    expect(failed.stderr()).not.toContain("secret");
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("reports a port in use and a wrong chain, and exits with 1", async () => {
    const devnet = await startDevnet({ chainId: 988 });
    onTestFinished(() => devnet.stop());
    const { port, close } = await listen();
    onTestFinished(close);
    const failed = run([], {
      INDEXER_CHAINS: "plasma",
      INDEXER_RPC_URLS_PLASMA: devnet.rpcUrl,
      INDEXER_DATABASE: `sqlite:${join(await createDirectory(), "indexer.db")}`,
      INDEXER_PORT: String(port),
    });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(failed.stderr()).toMatch(/chain 988[\s\S]*INDEXER_RPC_URLS/);
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("reports that the database is away, and exits with 1", async () => {
    const failed = run([], {
      INDEXER_CHAINS: "plasma",
      INDEXER_RPC_URLS_PLASMA: "http://127.0.0.1:1",
      INDEXER_DATABASE: "postgres://user:secret@127.0.0.1:1/indexer",
      INDEXER_PORT: "0",
    });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toMatch(/127\.0\.0\.1:1\/indexer[\s\S]*Start or repair the database/);
    expect(failed.stderr()).not.toContain("secret");
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("prints its usage for wrong arguments, and exits with 1", async () => {
    const refused = run(["start"]);
    expect(await refused.ended).toBe(1);
    expect(refused.stderr()).toContain('Unknown argument "start"');
    expect(refused.stderr()).toContain("keys create");
  });
});
