import type { RpcPool } from "@coinslot/chain";
import type { SourceHealth } from "../api/transfer-source.ts";
import type { ChainConfiguration } from "../configuration.ts";
import type { Progress } from "../history/progress.ts";
import type { ChainStatus, Health, IndexerStatus } from "../status.ts";
import type { Store } from "../store/open-store.ts";
import { readChainStatus } from "./read-chain-status.ts";

/** This process's knowledge of a chain, beside the database's. */
export interface FollowedChain {
  chain: ChainConfiguration;
  pool: Pick<RpcPool, "status">;
  progress: Pick<Progress, "pace">;
}

/** Status of all chains. Never rejects: the result reports a database that is away. */
export async function readIndexerStatus(
  openStore: () => Promise<Store>,
  { chains, role }: { chains: readonly FollowedChain[]; role: IndexerStatus["role"] },
): Promise<IndexerStatus> {
  try {
    const { database, tokens } = await openStore();
    const statuses = await Promise.all(
      chains.map(async ({ chain, pool, progress }) => {
        const status = await readChainStatus(database, {
          chain,
          tokens: tokens.filter(({ chainId }) => chainId === chain.chainId),
          pace: progress.pace(),
          rpcLatencyMs: fastest(pool),
        });
        return withEndpoints(status, pool);
      }),
    );
    const health = worst(statuses.map((status) => status.health));
    return { health, role, database: "healthy", chains: statuses };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    const statuses = chains.map(({ chain }) => withoutDatabase(chain, problem));
    return { health: "unhealthy", role, database: "unhealthy", chains: statuses };
  }
}

/** The part of a status that the API shows. */
export function healthOf({ health, database, chains }: IndexerStatus): SourceHealth {
  return {
    status: health,
    isDatabaseHealthy: database === "healthy",
    tokens: chains.flatMap(({ name, rpcLatencyMs, tokens }) =>
      tokens.map((token) => ({
        blockchain: name,
        token: token.name,
        isHealthy: token.health === "healthy",
        lag: token.lagBlocks,
        indexedTo: token.indexedTo,
        verifiedTo: token.verifiedTo,
        rpcLatencyMs,
      })),
    ),
  };
}

function withoutDatabase(
  { name, chainId, tokens }: ChainConfiguration,
  problem: string,
): ChainStatus {
  return {
    name,
    chainId,
    state: "waiting",
    health: "unhealthy",
    problem,
    head: undefined,
    finalized: undefined,
    lagBlocks: undefined,
    sinceProgressMs: undefined,
    proofs: undefined,
    repairedBlocks: 0,
    doubtedFrom: undefined,
    rpcLatencyMs: undefined,
    eventsPerSecond: undefined,
    secondsLeft: undefined,
    tokens: tokens.map((token) => ({
      name: token.name,
      indexedTo: undefined,
      verifiedTo: undefined,
      lagBlocks: undefined,
      health: "unhealthy",
    })),
  };
}

/** A chain with an endpoint of another chain is degraded, and its tokens are as they are. */
function withEndpoints(status: ChainStatus, pool: Pick<RpcPool, "status">): ChainStatus {
  const wrong = pool.status().filter(({ state }) => state === "wrong-chain");
  if (wrong.length === 0 || status.health !== "healthy") return status;
  const numbers = wrong.map(({ endpoint }) => endpoint).join(", ");
  const name = wrong.length === 1 ? "Endpoint" : "Endpoints";
  const problem = `${name} ${numbers} of another chain: not used`;
  return { ...status, health: "degraded", problem };
}

function worst(healths: readonly Health[]): Health {
  if (healths.includes("unhealthy")) return "unhealthy";
  return healths.includes("degraded") ? "degraded" : "healthy";
}

function fastest(pool: Pick<RpcPool, "status">): number | undefined {
  const latencies = pool.status().flatMap(({ latencyMs }) => latencyMs ?? []);
  return latencies.length === 0 ? undefined : Math.min(...latencies);
}
