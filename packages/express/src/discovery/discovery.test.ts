import type { RequestHandler } from "express";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { appOf, gateOf, usdc } from "../testing/discovered-routes.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option } from "../testing/shop.ts";

describe.each(expressVersions)("discovery on $name", ({ express }) => {
  it("serves the same document and text to every host, and nothing at other paths", async () => {
    const gate = gateOf({ "GET /weather": { accepts: usdc() } });
    await gate.ready();
    const app = appOf(gate, { express });
    const other = appOf(gate);
    for (const path of ["/openapi.json", "/llms.txt"]) {
      const first = await supertest(app).get(path).expect(200);
      const second = await supertest(app)
        .get(`${path}?a=b`)
        .set("Host", "evil.example")
        .expect(200);
      const third = await supertest(other).get(path).expect(200);
      expect([second.text, third.text]).toEqual([first.text, first.text]);
      expect(first.text).not.toContain("127.0.0.1");
      await supertest(app).post(path).expect(404);
      await supertest(app).get(`${path}/`).expect(404);
    }
    await supertest(app).get("/weather").expect(404);
  });

  it("lets a caller keep a document for five minutes, and ask whether it has changed", async () => {
    const gate = gateOf({ "GET /weather": { accepts: option() } });
    await gate.ready();
    const agent = supertest(appOf(gate, { express }));
    const { headers, text } = await agent.get("/openapi.json").expect(200);
    expect(headers).toMatchObject({
      "cache-control": "max-age=300",
      "content-type": expect.stringMatching(/^application\/json/),
      "x-content-type-options": "nosniff",
    });
    const { etag = "" } = headers;
    const head = await agent.head("/openapi.json").expect(200);
    expect(head.headers).toMatchObject({ etag, "content-length": String(Buffer.byteLength(text)) });
    const known = await agent.get("/openapi.json").set("If-None-Match", etag).expect(304);
    expect(known.text).toBe("");
    await agent.get("/openapi.json").set("If-None-Match", '"another"').expect(200);
    const llms = await agent.get("/llms.txt").expect("Content-Type", "text/plain; charset=utf-8");
    expect(llms.headers.etag).not.toBe(etag);
  });

  it("answers 503 until the facilitator is ready, and the document from then on", async () => {
    const facilitator = createPaperFacilitator();
    let become: (isSupported: true) => void = () => undefined;
    const start = new Promise<true>((resolve) => {
      become = resolve;
    });
    const gate = paymentMiddleware(
      { "GET /weather": { accepts: option() } },
      { ...facilitator, getSupported: () => start.then(() => facilitator.getSupported()) },
    );
    const agent = supertest(appOf(gate, { express }));
    const refused = await agent.get("/openapi.json").expect(503);
    expect(refused.headers).toMatchObject({ "cache-control": "no-store", "retry-after": "1" });
    become(true);
    await gate.ready();
    await agent.get("/openapi.json").expect(200);
  });

  it.each(["before", "behind"])(
    "sells a document that stands in the table, mounted %s the gate, and no other",
    async (place) => {
      const routes: PaymentRoutes = { "GET /openapi.json": { accepts: option() } };
      const facilitator = createPaperFacilitator();
      const gate = paymentMiddleware(routes, facilitator);
      const discovery = paymentMiddleware.discovery(gate);
      const order: RequestHandler[] = place === "before" ? [discovery, gate] : [gate, discovery];
      const shop = await openShop({
        express,
        routes: {},
        serve: (app) => void app.use(...order),
      });
      await gate.ready();
      try {
        const url = `${shop.url}/openapi.json`;
        expect((await fetch(url)).status).toBe(402);
        expect((await fetch(`${shop.url}/llms.txt`)).status).toBe(200);
        const { headers } = await createBuyer().payFor(url);
        const paid = await fetch(url, { headers });
        expect(paid.status).toBe(200);
        expect(paid.headers.get("Cache-Control")).toContain("private");
        expect(JSON.parse(await paid.text())).toMatchObject({ paths: { "/openapi.json": {} } });
        expect(facilitator.settled).toHaveLength(1);
      } finally {
        await shop.close();
      }
    },
  );

  it("sells no document before every gate is ready to have it written", async () => {
    const facilitator = createPaperFacilitator();
    const routes: PaymentRoutes = {
      "GET /openapi.json": { accepts: option(), paymentFlow: "upfront" },
    };
    const gate = paymentMiddleware(routes, facilitator);
    const starting = paymentMiddleware(
      { "GET /weather": { accepts: option() } },
      { ...facilitator, getSupported: () => new Promise<never>(() => undefined) },
    );
    await gate.ready();
    await supertest(appOf([gate, starting], { express }))
      .get("/openapi.json")
      .expect(503);
  });

  it("is free before a gate that sells all paths, and sold behind it", async () => {
    const all = expressVersions[0]?.express === express ? "/*" : "/*rest";
    const routes: PaymentRoutes = { [`GET ${all}`]: { accepts: option() } };
    const gate = gateOf(routes, { app: express() });
    await gate.ready();
    const discovery = paymentMiddleware.discovery(gate);
    await supertest(express().use(discovery, gate)).get("/openapi.json").expect(200);
    await supertest(express().use(gate, discovery)).get("/openapi.json").expect(402);
  });

  it("leaves the document free where a gate sells one of its name below a mount path", async () => {
    const gate = gateOf({ "GET /openapi.json": { accepts: option() } });
    await gate.ready();
    const { body } = await supertest(appOf([{ gate, mountPath: "/v2" }], { express }))
      .get("/openapi.json")
      .expect(200);
    expect(Object.keys(body.paths)).toEqual(["/v2/openapi.json"]);
  });

  it("leaves it free at the root where its name is sold below a parameter, and sells that one", async () => {
    const gate = gateOf({ "GET /openapi.json": { accepts: option() } });
    await gate.ready();
    const discovery = paymentMiddleware.discovery([{ gate, mountPath: "/:tenant" }]);
    const app = express().use(discovery).use("/:tenant", discovery);
    const { body } = await supertest(app).get("/openapi.json").expect(200);
    expect(Object.keys(body.paths)).toEqual(["/{tenant}/openapi.json"]);
    await supertest(app).get("/acme/openapi.json").expect(402);
  });
});
