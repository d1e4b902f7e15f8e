import type { Database } from "@coinslot/storage";
import type { ChainConfiguration } from "../configuration.ts";
import type { Pace } from "../history/progress.ts";
import type { ChainStatus, Health, TokenStatus } from "../status.ts";
import { readChecks } from "../store/checks.ts";
import { type BlockRange, readCoverage } from "../store/coverage.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** Time after which the writer is presumed gone, or unable to poll the chain. */
const unseenAfterMs = 15_000;
/** Polls after which the recorded head of a live chain is presumed outdated, but no sooner. */
const staleHeadPolls = 5;
/** A chain that is late by this multiple of the limit is unhealthy. */
const unhealthyFactor = 5;
/** Distance of history from the head that still counts as nearly there. */
const nearBlocks = 64;

export interface StatusQuestion {
  chain: ChainConfiguration;
  tokens: readonly KnownToken[];
  /** This process's own knowledge. */
  pace: Pace | undefined;
  rpcLatencyMs: number | undefined;
}

/**
 * Status of a chain, from its writer's records, so that every process returns the same. All ages
 * are differences on the database's clock: a skewed clock of a process or a chain plays no part.
 */
export async function readChainStatus(
  { kysely, dialect }: Database<IndexerSchema>,
  { chain, tokens, pace, rpcLatencyMs }: StatusQuestion,
): Promise<ChainStatus> {
  const row = await kysely
    .selectFrom("indexer_chains")
    .selectAll()
    .select(dialect.nowMs().as("now_ms"))
    .where("chain_id", "=", chain.chainId)
    .executeTakeFirst();
  const coverage = await readCoverage(kysely, tokens);
  const verified = await readCoverage(kysely, tokens, "indexer_verified_ranges");
  const checks = await readChecks(kysely, chain.chainId);
  const doubtedFrom = checks?.doubted_from ?? undefined;
  // A doubted block is not vouched for: the chain's lag counts from the block below it.
  const vouched = (block: number | undefined) =>
    block === undefined || doubtedFrom === undefined ? block : Math.min(block, doubtedFrom - 1);
  const indexedTo = (token: KnownToken) =>
    vouched(findIndexedTo(coverage.get(token.id) ?? [], token));
  const verifiedTo = (token: KnownToken) =>
    vouched(findIndexedTo(verified.get(token.id) ?? [], token));
  const known = row?.head_number ?? undefined;
  // The second read may be of a later moment: indexed blocks exist, even above the head of just
  // before.
  const head =
    known === undefined
      ? undefined
      : Math.max(known, ...tokens.map((token) => indexedTo(token) ?? 0));
  const lowest = lowestOf(tokens.filter((token) => token.startBlock <= (head ?? 0)).map(indexedTo));
  const behind = (block: number | undefined) =>
    head === undefined || block === undefined ? undefined : head - block;
  const unseenMs = row && Number(row.now_ms) - row.seen_at_ms;
  const sinceProgressMs = row && Number(row.now_ms) - row.progress_at_ms;
  // A writer that cannot write, as on a full disk, leaves its last head, and a lag of before. One
  // that cannot poll records its problem alone. In doubt the lag counts from a known block. History
  // may be unseen for long, while it reads a range.
  const isUnseen = (unseenMs ?? 0) > Math.max(unseenAfterMs, staleHeadPolls * chain.pollIntervalMs);
  const isHeadStale =
    doubtedFrom === undefined &&
    ((row?.state === "live" && isUnseen) ||
      (row?.state !== "stopped" && (row?.problem ?? null) !== null));
  const lagOf = (block: number | undefined) => (isHeadStale ? undefined : behind(block));
  const state = head === undefined ? "waiting" : (row?.state ?? "waiting");
  const verdict = judge({
    state,
    problem: row?.problem ?? checks?.problem ?? undefined,
    isDoubted: doubtedFrom !== undefined,
    isDisputed: (checks?.problem ?? null) !== null,
    unseenMs,
    sinceProgressMs,
    lagBlocks: behind(lowest),
    staleAfterMs: chain.staleAfterMs,
  });
  // A token that is filled beside the others; one that begins above the head cannot be late.
  const isLate = (token: KnownToken) =>
    token.startBlock <= (head ?? 0) &&
    (head ?? 0) - (indexedTo(token) ?? Number.NEGATIVE_INFINITY) > nearBlocks;
  const late = tokens.find(isLate);
  return {
    name: chain.name,
    chainId: chain.chainId,
    state,
    ...(verdict.health === "healthy" && late !== undefined
      ? { health: "degraded", problem: verdict.problem ?? `${late.token} is far behind the head` }
      : verdict),
    head,
    finalized: row?.finalized_number ?? undefined,
    lagBlocks: lagOf(lowest),
    sinceProgressMs,
    proofs: checks?.proofs ?? undefined,
    repairedBlocks: checks?.repaired_blocks ?? 0,
    doubtedFrom,
    rpcLatencyMs,
    eventsPerSecond: pace?.transfersPerSecond,
    secondsLeft: pace?.secondsLeft,
    tokens: tokens.map((token): TokenStatus => {
      const health = verdict.health === "healthy" && isLate(token) ? "degraded" : verdict.health;
      return {
        name: token.token,
        indexedTo: indexedTo(token),
        verifiedTo: verifiedTo(token),
        lagBlocks: lagOf(indexedTo(token)),
        health,
      };
    }),
  };
}

function judge(facts: {
  state: ChainStatus["state"];
  problem: string | undefined;
  isDoubted: boolean;
  isDisputed: boolean;
  unseenMs: number | undefined;
  sinceProgressMs: number | undefined;
  lagBlocks: number | undefined;
  staleAfterMs: number;
}): { health: Health; problem: string | undefined } {
  const { state, problem, unseenMs = 0, sinceProgressMs = 0, lagBlocks, staleAfterMs } = facts;
  if (state === "stopped" || facts.isDoubted) return { health: "unhealthy", problem };
  // Each against its own limit: the block time of a chain says nothing about the interval of polls.
  const lateness = Math.max(unseenMs / unseenAfterMs, sinceProgressMs / staleAfterMs);
  if (lateness > unhealthyFactor)
    return { health: "unhealthy", problem: problem ?? "Nothing new for a long time" };
  if (lateness > 1) return { health: "degraded", problem: problem ?? "Nothing new for a while" };
  if (state === "waiting") return { health: "degraded", problem: problem ?? "Not begun yet" };
  if (state === "history" && (lagBlocks === undefined || lagBlocks > nearBlocks))
    return { health: "degraded", problem: problem ?? "History is being read" };
  if (facts.isDisputed) return { health: "degraded", problem };
  return { health: "healthy", problem };
}

/** The last block up to which there is no gap from the start block on. */
function findIndexedTo(
  ranges: readonly BlockRange[],
  { startBlock }: KnownToken,
): number | undefined {
  const first = ranges.find(({ from, next }) => from <= startBlock && next > startBlock);
  return first && first.next - 1;
}

function lowestOf(blocks: readonly (number | undefined)[]): number | undefined {
  return blocks.includes(undefined) || blocks.length === 0
    ? undefined
    : Math.min(...blocks.map(Number));
}
