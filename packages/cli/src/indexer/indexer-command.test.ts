import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { createIndexer, indexerChain } from "@coinslot/indexer";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
});
afterAll(() => devnet?.stop());

it("coinslot indexer serves, and stops gracefully", async () => {
  const env = {
    INDEXER_CHAINS: "plasma",
    INDEXER_RPC_URLS_PLASMA: devnet.rpcUrl,
    INDEXER_DATABASE: "sqlite::memory:",
    INDEXER_PORT: "0",
    INDEXER_LOG_LEVEL: "silent",
  };
  let status: number | undefined;
  let url = "";
  const { code, err } = await runCoinslot(["indexer"], {
    env,
    async interruptAfter(said) {
      url = /Serving at (\S+);/.exec(said)?.[1] ?? "";
      status = (await fetch(`${url}/livez`)).status;
    },
  });
  expect(status).toBe(200);
  expect(code).toBe(exitCode.done);
  expect(err).toContain("Stopped.");
  await expect(fetch(`${url}/livez`)).rejects.toThrow();
});

it("coinslot indexer lists all obstacles to its start, and exits with 1", async () => {
  const env = { INDEXER_PORT: "many", INDEXER_CHAINS: "plasma,moon" };
  const { code, err } = await runCoinslot(["indexer"], { env });
  expect(code).toBe(exitCode.failed);
  expect(err).toContain("INDEXER_PORT");
  expect(err).toContain("INDEXER_RPC_URLS_PLASMA");
  expect(err).toContain("moon");
});

it("coinslot indexer verifies, reindexes and rewinds an index, with progress", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-maintenance-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "indexer.yaml");
  const chain = { preset: "plasma", rpcUrls: [devnet.rpcUrl], verifyAfterMs: 50 };
  await writeFile(file, JSON.stringify({ chains: [chain] }));
  const env = { INDEXER_DATABASE: `sqlite:${join(folder, "indexer.db")}` };
  await devnet.mine(20);
  const run = (...args: string[]) =>
    runCoinslot(["indexer", ...args, "--chain", "plasma", "--config", file], { env });
  const fresh = await run("verify");
  expect(fresh.code).toBe(exitCode.usage);
  expect(fresh.err).toContain("Nothing of plasma is indexed in this database yet");
  const service = createIndexer({
    chains: [indexerChain("plasma", { rpcUrls: [devnet.rpcUrl] })],
    database: env.INDEXER_DATABASE,
  });
  onTestFinished(() => service.close());
  await service.start();
  const readState = async () => (await service.status()).chains[0]?.state;
  await expect.poll(readState, { timeout: 20_000 }).toBe("live");
  await service.close();
  for (const command of [["verify"], ["reindex", "--from", "2", "--to", "5"]]) {
    const { code, out, err } = await run(...command);
    expect(err).toContain(`${command[0]} plasma: 100%`);
    expect(out).toContain("plasma is verified; 0 blocks were repaired.");
    expect(code).toBe(exitCode.done);
  }
  const { code, out } = await run("rewind", "--to", "3");
  expect(out).toContain("plasma stands at block 3");
  expect(code).toBe(exitCode.done);

  const wrong = await run("verify", "--token", "gold");
  expect(wrong.code).toBe(exitCode.usage);
  expect(wrong.err).toContain("Unknown token gold on plasma; known are usdt");
  expect((await run("rewind", "--to", "soon")).code).toBe(exitCode.usage);
});
