import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("a stalled head, on $engine", ({ createUrl }) => {
  it("makes the chain degraded, then unhealthy, until it moves, at any time of the chain's clock", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { staleAfterMs: 700 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const health = async () => (await indexer.status()).chains[0]?.health;
    const becomes = (expected: string) =>
      expect.poll(health, { timeout: 20_000, interval: 20 }).toBe(expected);
    await devnet.mine();
    await becomes("healthy");
    await becomes("degraded");
    await becomes("unhealthy");
    // A day ahead of all other clocks: ages are not computed from it.
    await devnet.client.increaseTime({ seconds: 86_400 });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await becomes("healthy");
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.cut();
    await becomes("unhealthy");
    expect((await indexer.status()).chains[0]?.problem).toContain("No RPC endpoint");
    proxy.mend();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 2n });
    await becomes("healthy");
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});
