import { systemClock } from "@coinslot/chain";
import { expect } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { silentLogger } from "../logger.ts";
import {
  type MaintenanceProgress,
  type MaintenanceWish,
  runMaintenance,
} from "../maintenance/run-maintenance.ts";
import { finalDepth } from "./final-depth.ts";
import type { startIndexer, startUsedChain } from "./scene.ts";

export type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

export function maintain(
  devnet: UsedChain,
  database: string,
  wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">,
  signal = new AbortController().signal,
  onProgress: (progress: MaintenanceProgress) => void = () => {},
  clock = systemClock,
) {
  const chain = devnetChain({
    rpcUrls: [devnet.rpcUrl],
    pollIntervalMs: 10,
    verifyAfterMs: 200,
    requestTimeoutMs: 5_000,
    finality: { depth: finalDepth },
  });
  return runMaintenance({
    configuration: { chains: [chain], database, leaseMs: 600 },
    wish: { chain: "devnet", from: 0, ...wish },
    logger: silentLogger,
    signal,
    onProgress,
    clock,
  });
}

export async function expectVerified(
  service: Awaited<ReturnType<typeof startIndexer>>,
  devnet: UsedChain,
): Promise<void> {
  const head = Number(await devnet.client.getBlockNumber());
  await expect
    .poll(async () => (await service.status()).chains[0]?.tokens[0]?.verifiedTo, {
      timeout: 20_000,
    })
    .toBe(head - finalDepth);
}
