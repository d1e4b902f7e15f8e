import { createRequire } from "node:module";
import { type Listening, listen } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

// The tree of a workspace with Express 4 at its root. This package resolves it, and the application
// resolves Express 5.
vi.mock("express", async () => {
  const { createRequire: require } = await import("node:module");
  const express4 = require(import.meta.url)("express4");
  return { ...express4, default: express4 };
});

const express5: typeof import("express") = createRequire(import.meta.url)("express");

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const content = "the content that is sold";
const accepts = option();

async function open(routes: PaymentRoutes, isPassed: boolean) {
  const app = express5();
  const errors: unknown[] = [];
  const gate = paymentMiddleware(routes, createPaperFacilitator(), {
    onError: (error) => errors.push(error),
    ...(isPassed ? { app } : {}),
  });
  app.use(gate);
  app.get("/files/*rest", (_request, response) => void response.send(content));
  app.get("/free", (_request, response) => void response.send("free"));
  await gate.ready();
  const listening = await listen(app);
  opened.push(listening);
  const ask = async (path: string) => {
    const response = await supertest(listening.url).get(path);
    return { status: response.status, text: response.text };
  };
  return { ask, errors };
}

describe("an application on Express 5 with Express 4 beside the middleware", () => {
  it("closes a key that only Express 4 understands, and still serves the others", async () => {
    const { ask, errors } = await open(
      { "GET /files/*": { accepts }, "GET /reports/:id": { accepts } },
      false,
    );
    expect(await ask("/free")).toEqual({ status: 200, text: "free" });
    for (const path of ["/files/report.pdf", "/files/a/b"]) {
      const { status, text } = await ask(path);
      expect(status).toBe(503);
      expect(text).not.toContain(content);
    }
    expect((await ask("/reports/7")).status).toBe(402);
    expect(errors).toEqual([expect.any(ConfigurationError)]);
  });

  it("closes a wildcard of Express 5 that Express 4 has parsed", async () => {
    const { ask, errors } = await open({ "GET /files/*rest.pdf": { accepts } }, false);
    expect((await ask("/files/report.pdf")).status).toBe(503);
    expect((await ask("/free")).status).toBe(200);
    expect(errors).toHaveLength(1);
  });

  it("refuses a named wildcard of Express 5 at start, which Express 4 takes for text", async () => {
    await expect(open({ "GET /files/*rest": { accepts } }, false)).rejects.toThrow(
      /Express 4 takes for text.*options\.app/,
    );
  });

  it("sells a wildcard of Express 5 when the application is passed", async () => {
    const { ask, errors } = await open({ "GET /files/*rest": { accepts } }, true);
    expect((await ask("/files/report.pdf")).status).toBe(402);
    expect((await ask("/free")).status).toBe(200);
    expect(errors).toEqual([]);
  });

  it("refuses a wildcard of Express 4 at start when the application is passed", async () => {
    await expect(open({ "GET /files/*": { accepts } }, true)).rejects.toThrow(
      /Express 5 does not understand/,
    );
  });
});
