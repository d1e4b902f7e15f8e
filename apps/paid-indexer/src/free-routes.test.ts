import { createLogger } from "@coinslot/hosting";
import { ApiError, createErrorHandler, type HealthBody } from "@coinslot/indexer";
import express from "express";
import supertest from "supertest";
import { expect, it } from "vitest";
import { freeRoutes } from "./free-routes.ts";

/** The free routes before a scripted source, with a clock set by the test. */
function createFreeRoutes(getHealth: () => Promise<HealthBody>) {
  let now = 0;
  const app = express();
  const free = { getHealth, listChains: async () => ({ chains: [] }) };
  app.use(freeRoutes({ free, healthFreshMs: 1_000 }, { now: () => now }));
  app.use(createErrorHandler(createLogger("silent")));
  return {
    askHealth: () => supertest(app).get("/api/v1/health"),
    wait(ms: number) {
      now += ms;
    },
  };
}

function health(status: HealthBody["status"]): HealthBody {
  return {
    status,
    timestamp: "2026-01-01T00:00:00.000Z",
    summary: { healthy: 0, unhealthy: 0, total: 0 },
    checks: { database: { status: "healthy" }, indexers: {} },
  };
}

it("a free route asks the API again exactly when its answer is stale", async () => {
  let asked = 0;
  const routes = createFreeRoutes(async () => {
    asked += 1;
    return health(asked === 1 ? "healthy" : "degraded");
  });
  expect((await routes.askHealth()).status).toBe(200);
  routes.wait(999);
  expect((await routes.askHealth()).status).toBe(200);
  expect(asked).toBe(1);
  routes.wait(1);
  expect(await routes.askHealth()).toMatchObject({ status: 503, body: { status: "degraded" } });
  expect(asked).toBe(2);
});

it("a free route serves its last answer while the API is rate limited, but not after a fault", async () => {
  let fault: Error | undefined;
  const routes = createFreeRoutes(async () => {
    if (fault !== undefined) throw fault;
    return health("healthy");
  });
  await routes.askHealth();
  routes.wait(1_000);
  fault = new ApiError(429, "Too many.");
  expect((await routes.askHealth()).status).toBe(200);
  fault = new ApiError(503, "Away.");
  expect((await routes.askHealth()).status).toBe(503);
  fault = undefined;
  expect((await routes.askHealth()).status).toBe(200);
});
