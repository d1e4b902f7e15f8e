import express from "express";
import supertest from "supertest";
import { expect, it } from "vitest";
import { probeRouter, type Readiness } from "./probes.ts";

function createApp(status: Readiness["status"], details: Record<string, unknown> = {}) {
  let reads = 0;
  const app = express().use(
    probeRouter({
      readReadiness: async () => ({ status, ...details }),
      async readMetrics() {
        reads += 1;
        return { contentType: "text/plain; version=0.0.4", text: `reads ${reads}\n` };
      },
    }),
  );
  return app;
}

it("/livez answers 200 in any state of the service's dependencies", async () => {
  await supertest(createApp("not ready")).get("/livez").expect(200, { status: "live" });
});

it("/readyz answers 200 where the service can serve, else 503 with its state", async () => {
  await supertest(createApp("ready")).get("/readyz").expect(200, { status: "ready" });
  for (const status of ["not ready", "starting", "stopping"] as const) {
    const app = createApp(status, { database: "unhealthy" });
    await supertest(app).get("/readyz").expect(503, { status, database: "unhealthy" });
  }
});

it("the metrics are read once for all requests within a second", async () => {
  const app = createApp("ready");
  for (let count = 0; count < 3; count += 1) {
    const { headers, text } = await supertest(app).get("/metrics").expect(200);
    expect(headers["content-type"]).toContain("version=0.0.4");
    expect(text).toBe("reads 1\n");
  }
});
