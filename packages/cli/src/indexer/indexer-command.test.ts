import { expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

it("says all that keeps the indexing service from starting, and ends with 1", async () => {
  const env = { INDEXER_PORT: "many", INDEXER_CHAINS: "plasma,moon" };
  const { code, err } = await runCoinslot(["indexer"], { env });
  expect(code).toBe(exitCode.failed);
  expect(err).toContain("INDEXER_PORT");
  expect(err).toContain("INDEXER_RPC_URLS_PLASMA");
  expect(err).toContain("moon");
});
