import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Devnet,
  listen,
  type Program,
  startCompiled,
  startDevnet,
  startPostgres,
  startSource,
} from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import supertest from "supertest";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { json, startScriptedApi } from "./testing/scripted-api.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

let devnet: Devnet;
let otherChain: Devnet;

beforeAll(async () => {
  [devnet, otherChain] = await Promise.all([startDevnet(), startDevnet({ chainId: 988 })]);
});

afterAll(async () => {
  await Promise.all([devnet?.stop(), otherChain?.stop()]);
});

/** The required settings, without a source of the data. */
function environment(): Record<string, string> {
  return {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_PRIVATE_KEY: devnet.accounts.relayer.privateKey,
    PAY_TO: devnet.accounts.seller.address,
    PAID_INDEXER_PORT: "0",
    INDEXER_CHAINS: "plasma",
    INDEXER_RPC_URLS_PLASMA: devnet.rpcUrl,
    INDEXER_DATABASE: "sqlite::memory:",
  };
}

const compiled = useProgram(new URL("./main.ts", import.meta.url));

/** Runs the program with this environment and no other settings; it ends with the test. */
function run(env: Record<string, string>, folder = root): Program {
  const program = startCompiled([compiled()], { folder, env });
  onTestFinished(program.kill);
  return program;
}

// Each of these starts programs, which is slow on a busy machine.
describe("the paid indexer", { timeout: 120_000 }, () => {
  it("sells until SIGTERM, and stops gracefully", async () => {
    // From the source, as the package's script starts it.
    const seller = startSource(["src/main.ts"], { folder: root, env: environment() });
    onTestFinished(seller.kill);
    const [, url] = await seller.waitFor(/"url":"(http:[^"]+)","msg":"Selling"/);
    const owner = `${url}/api/v1/plasma/usdt/${devnet.accounts.buyer.address}`;
    await supertest(owner).get("/token-transfers").expect(402);
    seller.child.kill("SIGTERM");
    expect(await seller.ended).toBe(0);
    expect(seller.stdout()).toContain('"msg":"Stopping"');
    expect(seller.stderr()).toBe("");
  });

  it("stops gracefully while its database is unreachable", async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const { url } = await postgres.createDatabase();
    const seller = run({ ...environment(), COINSLOT_LEDGER: url, INDEXER_DATABASE: url });
    await seller.waitFor(/"msg":"Selling"/);
    await postgres.stop();
    seller.child.kill("SIGTERM");
    expect(await seller.ended).toBe(0);
    expect(seller.stderr()).toBe("");
  });

  it("exits with 1 and reports an unreadable .env", async () => {
    const folder = await mkdtemp(join(tmpdir(), "coinslot-paid-indexer-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, ".env"));
    const failed = run(environment(), folder);
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toMatch(/^The paid indexer cannot start:\n {2}- \.env: cannot be read/);
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("exits with 1 and lists all faults of its settings", async () => {
    const failed = run({ PAID_INDEXER_PORT: "eighty" });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toMatch(/^The paid indexer cannot start:\n {2}- /);
    for (const name of ["PAID_INDEXER_PORT", "COINSLOT_RPC_URL", "PAY_TO", "INDEXER_CHAINS"]) {
      expect(failed.stderr()).toContain(name);
    }
    expect(failed.stderr()).not.toContain("    at ");
  });

  it("exits with 1 and lists all faults of port, chain and databases", async () => {
    const { port, close } = await listen();
    onTestFinished(close);
    const failed = run({
      ...environment(),
      COINSLOT_RPC_URL: otherChain.rpcUrl,
      COINSLOT_LEDGER: "postgres://user:secret@127.0.0.1:1/ledger",
      INDEXER_DATABASE: "postgres://user:secret@127.0.0.1:1/indexer",
      PAID_INDEXER_PORT: String(port),
    });
    expect(await failed.ended).toBe(1);
    const said = failed.stderr();
    expect(said).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(said).toMatch(/COINSLOT_RPC_URL: .*serves chain 988 instead of chain 9745/);
    expect(said).toMatch(
      /COINSLOT_LEDGER: .*127\.0\.0\.1:1\/ledger.* Start or repair the database/,
    );
    expect(said).toMatch(
      /127\.0\.0\.1:1\/indexer.* Start or repair the database.*INDEXER_DATABASE/,
    );
    expect(said).not.toContain("secret");
    expect(said).not.toContain("    at ");
  });

  it("exits with 1 where the indexer's endpoint serves another chain", async () => {
    const failed = run({ ...environment(), INDEXER_RPC_URLS_PLASMA: otherChain.rpcUrl });
    expect(await failed.ended).toBe(1);
    expect(failed.stderr()).toMatch(/chain 988[\s\S]*INDEXER_RPC_URLS/);
  });

  it("exits with 1 where the remote service is unreachable, or refuses the key", async () => {
    const api = await startScriptedApi();
    onTestFinished(() => api.stop());
    api.answer(json(401, { error: "Unauthorized", message: "No.", status: 401 }));
    const elsewhere = { ...environment(), INDEXER_API_KEY: "csk_secret" };
    const refused = run({ ...elsewhere, INDEXER_URL: api.url });
    const away = run({ ...elsewhere, INDEXER_URL: "http://127.0.0.1:1" });
    expect(await refused.ended).toBe(1);
    expect(refused.stderr()).toContain("INDEXER_API_KEY: the indexing service refuses it");
    expect(await away.ended).toBe(1);
    expect(away.stderr()).toContain("INDEXER_URL: The indexing service did not answer");
    expect(refused.stderr() + away.stderr()).not.toContain("csk_secret");
  });
});
