import { ApiError } from "@coinslot/indexer";
import { Router } from "express";
import type { Upstream } from "./upstream.ts";

const chainsFreshMs = 60_000;

/** Free routes: health and chains. A cache shared by all callers keeps the API's limits. */
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
 * A cache with a maximum age that shares one refresh between concurrent callers. After a 429 of the
 * source, the last answer stays good. Any other error is thrown, and not kept.
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
