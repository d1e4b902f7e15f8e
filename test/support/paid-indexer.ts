import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import { createLogger } from "@coinslot/hosting";
import { createIndexerClient, devnetChain } from "@coinslot/indexer";
import { type PaidIndexer, startPaidIndexer } from "@coinslot/paid-indexer-app";
import { plasma, plasmaUsdt0 } from "@coinslot/protocol";

/** Price of one request, in the smallest unit of the token. */
export const priceOfData = 1_000n;

/**
 * The example seller in this process, on a devnet with Plasma's id. Its data is up to date when it
 * resolves.
 */
export async function startTestPaidIndexer(devnet: Devnet): Promise<PaidIndexer> {
  const { seller, relayer } = devnet.accounts;
  const paidIndexer = await startPaidIndexer(
    {
      host: "127.0.0.1",
      port: 0,
      trustProxy: 0,
      logLevel: "silent",
      terms: { network: plasma, asset: plasmaUsdt0, price: priceOfData, payTo: seller.address },
      facilitator: {
        networks: [{ network: plasma, rpcUrls: [devnet.rpcUrl], relayer }],
        ledger: "sqlite::memory:",
      },
      upstream: {
        embedded: {
          chains: [devnetChain({ name: "plasma", rpcUrls: [devnet.rpcUrl] })],
          database: "sqlite::memory:",
        },
      },
    },
    { logger: createLogger("silent") },
  );
  await untilIndexed(paidIndexer.url);
  return paidIndexer;
}

/** Resolves when a seller's data are as new as its chain, by its free health route. */
export async function untilIndexed(url: string): Promise<void> {
  const client = createIndexerClient({ url });
  for (;;) {
    const { status, checks } = await client.getHealth();
    if (status === "healthy" && checks.indexers["plasma:usdt"]?.lag === 0) return;
    await sleep(50);
  }
}
