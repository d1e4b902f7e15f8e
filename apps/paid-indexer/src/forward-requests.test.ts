import { listen } from "@coinslot/devnet";
import { createLogger } from "@coinslot/hosting";
import { createErrorHandler } from "@coinslot/indexer";
import express, { type Express } from "express";
import supertest from "supertest";
import { expect, it, onTestFinished } from "vitest";
import { type ForwardOptions, forwardTo } from "./forward-requests.ts";
import { type ScriptedApi, startScriptedApi } from "./testing/scripted-api.ts";

/** A remote API, and an app that forwards every request to it. */
async function startForwarding(
  options: Partial<ForwardOptions> = {},
): Promise<{ api: ScriptedApi; app: Express }> {
  const api = await startScriptedApi();
  const app = express();
  app.get("/{*path}", forwardTo({ url: api.url, apiKey: "csk_key", ...options }));
  app.use(createErrorHandler(createLogger("silent")));
  onTestFinished(api.stop);
  return { api, app };
}

it("a forwarded request times out", async () => {
  const { api, app } = await startForwarding({ timeoutMs: 50 });
  api.answer(() => undefined);
  await supertest(app).get("/quotes").expect(503);
  api.answer((response) => void response.writeHead(200).write("{"));
  const halting = await supertest(app).get("/quotes").expect(503);
  expect(halting.body).toMatchObject({
    message: "The source of the data does not answer.",
  });
});

it("a forwarded request is aborted when its buyer has left", async () => {
  const { api, app } = await startForwarding();
  const { url, close } = await listen(app);
  onTestFinished(close);
  const left = new Promise<void>((resolve) => {
    api.answer((response) => void response.once("close", resolve));
  });
  const leaving = new AbortController();
  const asked = fetch(`${url}/quotes`, { signal: leaving.signal });
  await expect.poll(() => api.arrived).toHaveLength(1);
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await left;
});

it("a forwarded request keeps its path and query, and is answered 503 when the API is away", async () => {
  const { api, app } = await startForwarding();
  await supertest(app).get("/a%20b?c=%20d").expect(200);
  expect(api.arrived[0]?.target).toBe("/a%20b?c=%20d");
  const { app: away } = await startForwarding({ url: "http://127.0.0.1:1" });
  await supertest(away).get("/quotes").expect(503);
});
