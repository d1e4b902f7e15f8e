import { describe, expect, it } from "vitest";
import { findVerifiedTo, readCoverage } from "../store/coverage.ts";
import { addRequest } from "../store/requests.ts";
import { engines } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(engines)("blocks to be verified again, on $engine", ({ createUrl }) => {
  it("count as verified where a rewind without a command is bounded", async () => {
    const devnet = await startUsedChain();
    const { chainId } = devnet;
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    const { kysely, dialect } = await indexer.database();
    const tokens = await kysely.selectFrom("indexer_tokens").select("id").execute();
    const before = await findVerifiedTo(kysely, { chainId, tokens });
    expect(before).toBeGreaterThan(0);

    proxy.cut();
    await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });
    const verified = async () =>
      [...(await readCoverage(kysely, tokens, "indexer_verified_ranges")).values()].flat();
    await expect.poll(verified, { timeout: 20_000 }).toEqual([]);
    expect(await findVerifiedTo(kysely, { chainId, tokens })).toBe(before);
  });
});
