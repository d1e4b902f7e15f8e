import { ApiError } from "@coinslot/indexer";
import { Router } from "express";
import type { Upstream } from "./upstream.ts";

const chainsFreshMs = 60_000;

/** What costs nothing: health and chains, asked of the API once for everybody, so that its limits are kept. */
export function freeRoutes(
  { free, healthFreshMs }: Pick<Upstream, "free" | "healthFreshMs">,
  { now = Date.now }: { now?: () => number } = {},
): Router {
  const health = keepFor(healthFreshMs, () => free.getHealth(), now);
  const chains = keepFor(chainsFreshMs, () => free.listChains(), now);
  const router = Router();

  router.get("/api/v1/health", async (_request, response) => {
    const state = await health();
    response.status(state.status === "healthy" ? 200 : 503).json(state);
  });

  router.get("/api/v1/chains", async (_request, response) => {
    response.json(await chains());
  });

  return router;
}

/**
 * Asks again when the last answer is so old, and once for all who want it at that time. A source that has been asked
 * too often (429) leaves the last answer good; what else it throws is thrown, and not kept.
 */
function keepFor<Answer>(
  freshMs: number,
  ask: () => Promise<Answer>,
  now: () => number,
): () => Promise<Answer> {
  let kept: { answer: Answer; until: number } | undefined;
  let asking: Promise<Answer> | undefined;

  async function askOnce(): Promise<Answer> {
    try {
      const answer = await ask();
      kept = { answer, until: now() + freshMs };
      return answer;
    } catch (error) {
      if (kept && error instanceof ApiError && error.status === 429) return kept.answer;
      throw error;
    } finally {
      asking = undefined;
    }
  }

  return async function answerKept() {
    if (kept && now() < kept.until) return kept.answer;
    asking ??= askOnce();
    return asking;
  };
}
