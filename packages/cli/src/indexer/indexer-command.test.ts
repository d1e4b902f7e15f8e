import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
});
afterAll(() => devnet?.stop());

it("runs the indexing service, and ends it in order", async () => {
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

it("says all that keeps the indexing service from starting, and ends with 1", async () => {
  const env = { INDEXER_PORT: "many", INDEXER_CHAINS: "plasma,moon" };
  const { code, err } = await runCoinslot(["indexer"], { env });
  expect(code).toBe(exitCode.failed);
  expect(err).toContain("INDEXER_PORT");
  expect(err).toContain("INDEXER_RPC_URLS_PLASMA");
  expect(err).toContain("moon");
});
