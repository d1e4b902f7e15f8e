import { RpcError, type RpcPool, type RpcRequester } from "@coinslot/chain";
import { FacilitatorError } from "@coinslot/protocol";
import type { Findings } from "./findings.ts";

/** Findings of a check by all endpoints of a network. */
export interface AgreedFindings extends Findings {
  /** It has problems, and an endpoint that did not answer may contradict them. */
  isTransient: boolean;
}

/**
 * Runs a check against the pool. Where that finds a problem, each endpoint is asked: else the first
 * one could end each start. The fewest problems count, also none. Then those of others are
 * warnings.
 *
 * @throws RpcError or FacilitatorError when the chain is unreachable.
 */
export async function checkByEach(
  pool: RpcPool,
  check: (rpc: RpcRequester) => Promise<Findings>,
): Promise<AgreedFindings> {
  const found = await check(pool);
  if (found.problems.length === 0 || pool.endpoints.length === 1) {
    return { ...found, isTransient: false };
  }
  const looks = await Promise.all(
    pool.endpoints.map(async (rpc) => ({
      endpoint: rpc.endpoint,
      findings: await unlessSilent(check(rpc)),
    })),
  );
  const best = looks
    .flatMap(({ findings }) => findings ?? [])
    .reduce((a, b) => (b.problems.length < a.problems.length ? b : a), found);
  if (best.problems.length > 0) {
    return { ...best, isTransient: looks.some(({ findings }) => findings === undefined) };
  }
  const contradicted = looks.flatMap(({ endpoint, findings }) =>
    (findings?.problems ?? []).map(
      (problem) => `By endpoint ${endpoint}, which another one contradicts: ${problem}`,
    ),
  );
  return { problems: [], warnings: [...best.warnings, ...contradicted], isTransient: false };
}

/** The findings of one endpoint; `undefined` where it does not answer. */
async function unlessSilent(look: Promise<Findings>): Promise<Findings | undefined> {
  try {
    return await look;
  } catch (error) {
    if (error instanceof RpcError || error instanceof FacilitatorError) return undefined;
    throw error;
  }
}
