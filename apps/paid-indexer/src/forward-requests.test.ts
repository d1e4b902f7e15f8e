import { listen } from "@coinslot/devnet";
import { createErrorHandler } from "@coinslot/indexer";
import express from "express";
import { expect, it, onTestFinished } from "vitest";
import { createLogger } from "@coinslot/hosting";
import { type ForwardOptions, forwardTo } from "./forward-requests.ts";
import { type ScriptedApi, startScriptedApi } from "./testing/scripted-api.ts";

/** An API elsewhere, and a server that hands everything on to it. */
async function startForwarding(
  options: Partial<ForwardOptions> = {},
): Promise<{ api: ScriptedApi; url: string }> {
  const api = await startScriptedApi();
  const app = express();
  app.get("/{*path}", forwardTo({ url: api.url, apiKey: "csk_key", ...options }));
  app.use(createErrorHandler(createLogger("silent")));
  const { url, close } = await listen(app);
  onTestFinished(async () => {
    await close();
    await api.stop();
  });
  return { api, url };
}

it("waits for an answer for so long, and no longer", async () => {
  const { api, url } = await startForwarding({ timeoutMs: 50 });
  api.answer(() => undefined);
  const silent = await fetch(`${url}/quotes`);
  expect(silent.status).toBe(503);
  api.answer((response) => void response.writeHead(200).write("{"));
  const halting = await fetch(`${url}/quotes`);
  expect(halting.status).toBe(503);
  expect(await halting.json()).toMatchObject({
    message: "The source of the data does not answer.",
  });
});

it("asks no more for a buyer who has left", async () => {
  const { api, url } = await startForwarding();
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

it("hands on the path and the query as they are meant, and says when nobody is there", async () => {
  const { api, url } = await startForwarding();
  expect((await fetch(`${url}/a%20b?c=%20d`)).status).toBe(200);
  expect(api.arrived[0]?.target).toBe("/a%20b?c=%20d");
  const { url: away } = await startForwarding({ url: "http://127.0.0.1:1" });
  expect((await fetch(`${away}/quotes`)).status).toBe(503);
});
