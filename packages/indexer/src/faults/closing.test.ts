import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("closing the indexer, on $engine", ({ createUrl }) => {
  it.each(["history", "live"])("does not wait for a silent endpoint, in %s", async (state) => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { requestTimeoutMs: 100_000 },
    });
    if (state === "live") await expectExact(indexer, devnet, usdtOf(devnet));
    let asked = 0;
    proxy.set(() => {
      asked += 1;
    });
    await expect.poll(() => asked, { timeout: 20_000 }).toBeGreaterThan(0);
    const startedAt = performance.now();
    await indexer.close();
    expect(performance.now() - startedAt).toBeLessThan(50_000);
  });
});
