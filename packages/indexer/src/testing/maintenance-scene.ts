import { expect } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import type { Indexer } from "../indexer.ts";
import { silentLogger } from "../logger.ts";
import { type MaintenanceWish, runMaintenance } from "../maintenance/run-maintenance.ts";
import { finalDepth } from "./final-depth.ts";
import type { startUsedChain } from "./scene.ts";

export type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

export async function waitUntilDone(indexer: Indexer, request: number): Promise<void> {
  const { kysely } = await indexer.database();
  const readRequest = () =>
    kysely
      .selectFrom("indexer_requests")
      .select("done_at_ms")
      .where("id", "=", request)
      .executeTakeFirst();
  await expect
    .poll(readRequest, { timeout: 60_000, interval: 5 })
    .not.toMatchObject({ done_at_ms: null });
}

export function maintain(
  rpcUrl: string,
  database: string,
  wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">,
  signal = new AbortController().signal,
  onProgress: Parameters<typeof runMaintenance>[0]["onProgress"] = () => {},
) {
  const chain = devnetChain({
    rpcUrls: [rpcUrl],
    pollIntervalMs: 10,
    verifyAfterMs: 200,
    finality: { depth: finalDepth },
  });
  return runMaintenance({
    configuration: { chains: [chain], database, leaseMs: 600 },
    wish: { chain: "devnet", from: 0, ...wish },
    logger: silentLogger,
    signal,
    onProgress,
  });
}
