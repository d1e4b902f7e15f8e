import { listen } from "@coinslot/devnet";
import { ConfigurationError, knownAsset, plasma, plasmaUsdt0 } from "@coinslot/protocol";
import type { Express, RequestHandler } from "express";
import { validate } from "mppx/discovery";
import supertest from "supertest";
import { describe, expect, it, vi } from "vitest";
import {
  type DiscoveredGates,
  type DiscoveryOptions,
  type PaymentMiddleware,
  type PaymentMiddlewareOptions,
  type PaymentRoutes,
  paymentMiddleware,
} from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { type ExpressModule, expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, payTo } from "../testing/shop.ts";

const base = "eip155:8453";
const mppSecret = "a secret of thirty-two bytes and more";

/** A cent in USDC on Base, whose domain released buyers of MPP know. */
function usdc() {
  const { address: asset, name, version, decimals } = knownAsset(base) ?? plasmaUsdt0;
  return option({
    network: base,
    price: { amount: "10000", asset, extra: { name, version, decimals } },
  });
}

const euro = { amount: "5000", asset: payTo, extra: { name: "Euro", version: "1" } } as const;

function gateOf(routes: PaymentRoutes, options: PaymentMiddlewareOptions = {}): PaymentMiddleware {
  return paymentMiddleware(routes, createPaperFacilitator({ networks: [plasma, base] }), {
    mpp: { secrets: [mppSecret] },
    ...options,
  });
}

const [, newest] = expressVersions;

/** An application that serves the discovery of its gates. */
function appOf(
  gates: DiscoveredGates,
  {
    options,
    express = newest?.express,
  }: { options?: DiscoveryOptions; express?: ExpressModule | undefined } = {},
): Express {
  if (express === undefined) throw new Error("No Express");
  const app = express();
  app.use(paymentMiddleware.discovery(gates, options));
  return app;
}

/** The document of one gate of these routes. */
async function documentOf(
  routes: PaymentRoutes,
  { options, gate = {} }: { options?: DiscoveryOptions; gate?: PaymentMiddlewareOptions } = {},
) {
  const middleware = gateOf(routes, gate);
  await middleware.ready();
  const { body } = await supertest(appOf(middleware, { ...(options && { options }) }))
    .get("/openapi.json")
    .expect(200);
  expect(validate(body)).toEqual([]);
  return body;
}

async function llmsOf(routes: PaymentRoutes, options: DiscoveryOptions = {}, gate = {}) {
  const middleware = gateOf(routes, gate);
  await middleware.ready();
  const { text } = await supertest(appOf(middleware, { options })).get("/llms.txt").expect(200);
  return text;
}

function problemsOf(gates: unknown, options: unknown = {}): readonly string[] {
  try {
    Reflect.apply(paymentMiddleware.discovery, undefined, [gates, options]);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

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

describe("x-payment-info", () => {
  it("states a fixed price in both dialects, for every way to pay", async () => {
    const { paths } = await documentOf({
      "GET /weather": { accepts: [usdc(), option({ price: "$0.01" })] },
    });
    const asset = knownAsset(base)?.address;
    expect(paths["/weather"].get["x-payment-info"]).toEqual({
      price: { mode: "fixed", currency: "USD", amount: "0.01" },
      protocols: [
        {
          x402: {
            versions: [1, 2],
            accepts: [
              { scheme: "exact", network: base, amount: "10000", asset },
              {
                scheme: "exact",
                network: plasma,
                amount: "10000",
                asset: plasmaUsdt0.address,
              },
            ],
          },
        },
        { mpp: { method: "evm", intent: "charge", currency: asset } },
      ],
      offers: [
        {
          method: "evm",
          intent: "charge",
          amount: "10000",
          currency: asset,
          methodDetails: { chainId: 8453 },
        },
      ],
    });
    expect(paths["/weather"].get.responses).toHaveProperty("402");
  });

  it("states the offers that the 402 makes: none by MPP where a route has them off", async () => {
    const { paths } = await documentOf({
      "GET /off": { accepts: usdc(), mpp: false },
      "GET /on": { accepts: option(), mpp: true },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/off").protocols.map(Object.keys)).toEqual([["x402"]]);
    expect(info("/off")).not.toHaveProperty("offers");
    expect(info("/on").offers).toMatchObject([
      { amount: "1000", methodDetails: { chainId: 9745 } },
    ]);
  });

  it("leaves MPP out where the facilitator settles version 1 alone", async () => {
    const gate = paymentMiddleware(
      { "GET /a": { accepts: usdc() } },
      createPaperFacilitator({ versions: [1], networks: [base] }),
      { mpp: { secrets: [mppSecret] } },
    );
    await gate.ready();
    const { body } = await supertest(appOf(gate)).get("/openapi.json").expect(200);
    expect(body.paths["/a"].get["x-payment-info"].protocols).toEqual([
      { x402: expect.objectContaining({ versions: [1] }) },
    ]);
  });

  it("asks no function: such a price is null, and dynamic within the seller's bounds", async () => {
    const price = vi.fn(() => "$0.02" as const);
    const recipient = vi.fn(() => payTo);
    const { paths } = await documentOf({
      "GET /free": { accepts: { ...usdc(), price, payTo: recipient } },
      "GET /bound": {
        accepts: { ...usdc(), price },
        discovery: { price: { min: "$0.010", max: 2.5 } },
      },
      "GET /capped": { accepts: { ...usdc(), price }, discovery: { price: { max: "1" } } },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/free").price).toEqual({ mode: "dynamic" });
    expect(info("/free").offers).toEqual([
      { method: "evm", intent: "charge", amount: null, methodDetails: { chainId: 8453 } },
    ]);
    expect(info("/free").protocols[0].x402.accepts).toEqual([{ scheme: "exact", network: base }]);
    expect(info("/bound").price).toEqual({
      mode: "dynamic",
      currency: "USD",
      min: "0.01",
      max: "2.5",
    });
    expect(info("/capped").price).toEqual({ mode: "dynamic", currency: "USD", max: "1" });
    expect(price).not.toHaveBeenCalled();
    expect(recipient).not.toHaveBeenCalled();
  });

  it("calls no unknown token a dollar, and gives a range where ways to pay differ", async () => {
    const { paths } = await documentOf({
      "GET /euro": { accepts: option({ price: euro }) },
      "GET /range": { accepts: [usdc(), option({ price: "$0.03" }), option({ price: "$0.02" })] },
    });
    const info = (path: string) => paths[path].get["x-payment-info"];
    expect(info("/euro").price).toEqual({ mode: "dynamic" });
    expect(info("/range").price).toEqual({
      mode: "dynamic",
      currency: "USD",
      min: "0.01",
      max: "0.03",
    });
  });
});

describe("the OpenAPI document", () => {
  it("names service, contact and pages, and has relative paths without a public URL", async () => {
    const document = await documentOf(
      { "GET /a": { accepts: option() } },
      {
        options: {
          title: "Weather",
          version: "2.1",
          description: "Forecasts",
          contact: { email: "team@example.com" },
          guidance: "Ask for cities.",
          categories: ["data"],
          docs: { homepage: "https://example.com", apiReference: "/docs" },
        },
      },
    );
    expect(document).toMatchObject({
      openapi: "3.1.0",
      info: {
        title: "Weather",
        version: "2.1",
        description: "Forecasts",
        contact: { email: "team@example.com" },
        "x-guidance": expect.stringMatching(/^Ask for cities\.\n\nOperations with x-payment-info/),
      },
      "x-service-info": {
        categories: ["data"],
        docs: { homepage: "https://example.com", apiReference: "/docs", llms: "/llms.txt" },
      },
    });
    expect(document).not.toHaveProperty("servers");
  });

  it("has the public URL as its server, with the path that a proxy cuts", async () => {
    const gate = { publicUrl: "https://example.com/shop/" };
    const document = await documentOf({ "GET /a": { accepts: option() } }, { gate });
    expect(document.info.title).toBe("example.com");
    expect(document.servers).toEqual([{ url: "https://example.com/shop" }]);
    expect(document["x-agentcash-guidance"].llmsTxtUrl).toBe("https://example.com/shop/llms.txt");
    const text = await llmsOf({ "GET /a": { accepts: option() } }, {}, gate);
    expect(text).toContain('npx @coinslot/cli pay "https://example.com/shop/a"');
  });

  it("lists one operation for each method and path: the first, with its parameters' names", async () => {
    const { paths } = await documentOf({
      "GET /items/:id": { accepts: option(), description: "First" },
      "GET /items/:name": { accepts: option(), description: "Never" },
      "POST /items/:name": {
        accepts: option(),
        discovery: { parameters: [{ name: "name", in: "path", example: "x" }] },
      },
      "/all": { accepts: option() },
      "* /two": { accepts: option(), discovery: { methods: ["GET", "POST"] } },
      "QUERY /found": { accepts: option() },
    });
    expect(
      Object.entries<object>(paths).map(([path, item]) => [path, ...Object.keys(item)]),
    ).toEqual([
      ["/items/{id}", "get", "post"],
      ["/all", "get"],
      ["/two", "get", "post"],
    ]);
    expect(paths["/items/{id}"].get.summary).toBe("First");
    expect(paths["/items/{id}"].post.parameters[0]).toEqual({
      name: "id",
      in: "path",
      required: true,
      example: "x",
      schema: { type: "string" },
    });
  });

  it("hides a route of either document by discovery: false", async () => {
    const routes: PaymentRoutes = {
      "GET /open": { accepts: option() },
      "GET /secret/:token(hidden)": { accepts: option(), discovery: false },
    };
    const [express4] = expressVersions;
    const gate = gateOf(routes, { app: express4?.express() });
    await gate.ready();
    const agent = supertest(appOf(gate, { express: express4?.express }));
    const document = await agent.get("/openapi.json").expect(200);
    const text = await agent.get("/llms.txt").expect(200);
    expect(Object.keys(document.body.paths)).toEqual(["/open"]);
    expect(document.text + text.text).not.toContain("secret");
  });

  it("lists no route behind a hidden one of its method and path", async () => {
    const accepts = option();
    const first = gateOf({
      "GET /items/:id": { accepts, discovery: false },
      "GET /items/:name": { accepts },
      "POST /items/:name": { accepts },
      "/all": { accepts, discovery: false },
    });
    const second = gateOf({ "POST /all": { accepts }, "HEAD /items/:any": { accepts } });
    await Promise.all([first.ready(), second.ready()]);
    const { body } = await supertest(appOf([first, second]))
      .get("/openapi.json")
      .expect(200);
    const listed = Object.entries<object>(body.paths);
    expect(listed.map(([path, item]) => [path, ...Object.keys(item)])).toEqual([
      ["/items/{name}", "post"],
    ]);
  });

  it("lists several gates below their mount paths, and gates beside handlers by their names", async () => {
    const facilitator = createPaperFacilitator();
    const accepts = option();
    const gate = gateOf({ "GET /a": { accepts } });
    const mounted = gateOf({ "GET /": { accepts }, "GET /b/:id": { accepts } });
    const single = paymentMiddleware.route({ accepts, name: "POST /report" }, facilitator);
    const hidden = paymentMiddleware.route({ accepts, discovery: false }, facilitator);
    await Promise.all([gate, mounted, single, hidden].map((each) => each.ready()));
    const gates = [gate, { gate: mounted, mountPath: "/:tenant/v2" }, single, hidden];
    const { body } = await supertest(appOf(gates)).get("/openapi.json").expect(200);
    expect(Object.keys(body.paths)).toEqual([
      "/a",
      "/{tenant}/v2",
      "/{tenant}/v2/b/{id}",
      "/report",
    ]);
  });

  it("writes bodies, schemas and media types of OpenAPI", async () => {
    const { paths } = await documentOf({
      "POST /typed": {
        accepts: option(),
        mimeType: "application/json; charset=utf-8",
        discovery: {
          summary: "Typed",
          requestBody: { content: { "application/json": { schema: { type: "array" } } } },
          responseSchema: { type: "object" },
          parameters: [{ name: "limit", in: "query", schema: { type: "integer" } }],
        },
      },
      "PUT /plain": { accepts: option(), mimeType: "a picture" },
    });
    expect(paths["/typed"].post).toMatchObject({
      summary: "Typed",
      requestBody: { content: { "application/json": { schema: { type: "array" } } } },
      parameters: [{ name: "limit", in: "query" }, {}, {}],
      responses: {
        "200": { content: { "application/json; charset=utf-8": { schema: { type: "object" } } } },
      },
    });
    expect(paths["/plain"].put.requestBody).toEqual({ content: { "*/*": { schema: {} } } });
    expect(paths["/plain"].put.responses["200"]).not.toHaveProperty("content");
  });

  it("holds 1,000 routes in a tenth of the 10 MB that mppx reads", {
    timeout: 60_000,
  }, async () => {
    const accepts = [usdc(), option()];
    const gate = gateOf(
      Object.fromEntries(
        Array.from({ length: 1_000 }, (_, index) => [
          `GET /category-${index % 100}/items/${index}/:part`,
          { accepts, description: `Part of the item with the number ${index}` },
        ]),
      ),
    );
    await gate.ready();
    const agent = supertest(appOf(gate));
    const { text } = await agent.get("/openapi.json").expect(200);
    expect(text.length).toBeLessThan(2 ** 20);
    expect(validate(JSON.parse(text))).toEqual([]);
    const llms = await agent.get("/llms.txt").expect(200);
    expect(llms.text).toContain("- 900 more in the OpenAPI document");
  });

  it("is written in turns between other work, once for all who wait for it", async () => {
    const gate = gateOf(
      Object.fromEntries(
        Array.from({ length: 3_000 }, (_, index) => [
          `GET /category-${index % 100}/items/${index}/:part`,
          { accepts: [usdc(), option()] },
        ]),
      ),
    );
    await gate.ready();
    const shop = await listen(appOf(gate));
    const urls = Array.from({ length: 3 }, () => `${shop.url}/openapi.json`);
    let isOver = false;
    const turns: number[] = [];
    const count = (before: NodeJS.CpuUsage): void => {
      const { user } = process.cpuUsage(before);
      turns.push(user);
      const now = process.cpuUsage();
      if (!isOver) setImmediate(() => count(now));
    };
    try {
      count(process.cpuUsage());
      const texts = await Promise.all(urls.map(async (url) => (await fetch(url)).text()));
      isOver = true;
      expect(new Set(texts).size).toBe(1);
      const total = turns.reduce((sum, each) => sum + each, 0);
      expect(Math.max(...turns)).toBeLessThan(total / 4);
    } finally {
      await shop.close();
    }
  });

  it("holds nothing of the seller's but methods, paths, prices and words", async () => {
    const routes: PaymentRoutes = {
      "GET /a": {
        accepts: option({ extra: { internal: "note-of-the-seller" } }),
        varyHeaders: ["X-Internal-Size"],
        resource: "https://internal.example/a",
      },
    };
    const gate = gateOf(routes, { mpp: { secrets: [mppSecret], realm: "internal-realm" } });
    const single = paymentMiddleware.route(
      { accepts: option(), name: "internal-name", discovery: { paths: ["/b"] } },
      createPaperFacilitator(),
    );
    await Promise.all([gate.ready(), single.ready()]);
    const agent = supertest(appOf([gate, single]));
    const texts = await Promise.all(["/openapi.json", "/llms.txt"].map((path) => agent.get(path)));
    for (const { text } of texts) {
      expect(text).toContain("/b");
      expect(text).not.toMatch(/internal|note-of-the-seller|thirty-two/);
    }
  });
});

describe("llms.txt", () => {
  it("lists routes with prices, and has examples of a paid call by each protocol", async () => {
    const text = await llmsOf(
      {
        "GET /weather/:city": {
          accepts: usdc(),
          description: "The weather of a city",
          discovery: { parameters: [{ name: "city", in: "path", example: "são paulo" }] },
        },
        "POST /batch": {
          accepts: option({ price: () => "$1" }),
          discovery: { price: { max: "$9" } },
        },
      },
      { title: "Weather", description: "Forecasts" },
    );
    expect(text).toMatch(/^# Weather\n\n> Forecasts\n\n/);
    expect(text).toContain(
      "- [GET /weather/{city}](/weather/{city}): The weather of a city; $0.01\n- [POST /batch](/batch): up to $9\n",
    );
    expect(text).toContain('npx @coinslot/cli pay "$ORIGIN/weather/s%C3%A3o%20paulo"');
    expect(text).toContain("PAYMENT-SIGNATURE:");
    expect(text).toContain("Authorization: Payment");
  });

  it("speaks of the protocols alone by which something is sold", async () => {
    const text = await llmsOf({ "GET /a": { accepts: option() } });
    expect(text).toContain("PAYMENT-SIGNATURE");
    expect(text).not.toContain("MPP");
  });

  it("keeps the seller's quotes and markup words, on one line", async () => {
    const description =
      'A "quoted" <script>alert(1)</script>\n## Heading\r\n[link](javascript:x) `$(rm)`';
    const routes: PaymentRoutes = { "GET /a%20b/x'": { accepts: option(), description } };
    const title = "# A\n- title";
    const text = await llmsOf(routes, { title });
    const [line = ""] = text.split("\n").filter((each) => each.startsWith("- [GET"));
    expect(line).toContain(
      'A "quoted" \\<script\\>alert(1)\\</script\\> \\#\\# Heading \\[link\\](javascript:x) \\`$(rm)\\`; $0.001',
    );
    expect(text.split("\n")[0]).toBe("# \\# A - title");
    const document = await documentOf(routes, { options: { title } });
    expect(document.info.title).toBe(title);
    const [operation] = Object.values<{ get: { summary: string } }>(document.paths);
    expect(operation?.get.summary).toBe(description);
  });
});

describe("discovery at its start", () => {
  it("reports each route that no list can hold, all at once and by its key", () => {
    const accepts = option();
    const gate = gateOf({
      "GET /files/*rest": { accepts },
      "GET /optional{/:id}": { accepts },
      "GET /told{/:id}": { accepts, discovery: { paths: ["/told", "/told/{id}"] } },
      "GET /methods": { accepts, discovery: { methods: ["GET"] } },
      "GET /fixed": { accepts, discovery: { price: { max: "$1" } } },
      "GET /stranger/:id": {
        accepts,
        discovery: { parameters: [{ name: "city", in: "path" }] },
      },
    });
    const single = paymentMiddleware.route({ accepts }, createPaperFacilitator());
    expect(problemsOf([gate, single])).toEqual([
      '"GET /optional{/:id}": its path has no template of OpenAPI: set discovery.paths, or discovery: false',
      '"GET /methods": discovery.methods is for keys of all methods',
      '"GET /fixed": discovery.price is for prices by function, and tokens that are no known dollars',
      '"GET /stranger/:id": discovery.parameters names "city", which its path does not have',
      '"the route": it has no path: name it as a key, such as "GET /report", or set discovery.paths, or discovery: false',
    ]);
  });

  it.each([
    [
      undefined,
      {},
      "the gate must be a middleware that paymentMiddleware of this package has made",
    ],
    [() => undefined, {}, "the gate must be a middleware"],
    [[], {}, "name at least one middleware"],
    ["gate", { titel: "A" }, "options.titel is unknown"],
    ["gate", { title: " " }, "options.title must be a text"],
    ["gate", { guidance: "x".repeat(3401) }, "options.guidance must be a text of at most 3400"],
    [
      "gate",
      { contact: "me@example.com" },
      "options.contact must be an object with name, email, url",
    ],
    ["gate", { contact: { mail: "a" } }, "options.contact.mail is unknown"],
    ["gate", { categories: [1] }, "options.categories must be a list of texts"],
    [
      "gate",
      { docs: { homepage: "javascript:x" } },
      "options.docs.homepage must be a URL, or a path",
    ],
    ["gate", null, "the options must be an object"],
    ["mounted at v2", {}, 'gates[0]: mountPath must be a path such as "/v2"'],
    ["mounted at /v2/", {}, "gates[0]: mountPath must be a path"],
  ])("refuses %o with %o", (gates, options, problem) => {
    const gate = gateOf({ "GET /a": { accepts: option() } });
    const mountPath = typeof gates === "string" ? gates.split(" at ")[1] : undefined;
    const given = mountPath ? [{ gate, mountPath }] : gates === "gate" ? gate : gates;
    expect(problemsOf(given, options)).toEqual([expect.stringContaining(problem)]);
  });

  it("refuses gates with different public URLs", () => {
    const gates = ["https://a.example", "https://b.example"].map((publicUrl) =>
      gateOf({ "GET /a": { accepts: option() } }, { publicUrl }),
    );
    expect(problemsOf(gates)).toEqual([
      "the gates have different public URLs: https://a.example, https://b.example",
    ]);
  });

  it.each([
    ["yes", "discovery must be false, or an object"],
    [{ sumary: "x" }, "discovery has an unknown member: sumary"],
    [{ summary: 1 }, "discovery.summary must be a string of at most 1024 characters"],
    [{ paths: [] }, "discovery.paths must be a list of path templates"],
    [{ paths: ["a"] }, "discovery.paths must be a list of path templates"],
    [{ paths: ["/{id}/{id}"] }, "discovery.paths must be a list of path templates"],
    [{ methods: ["get"] }, "discovery.methods must be a list of GET"],
    [{ methods: ["GET", "GET"] }, "discovery.methods must be a list of GET"],
    [{ price: {} }, "discovery.price must have min, max or both"],
    [{ price: { min: 2, max: 1 } }, "discovery.price must have min, max or both"],
    [{ price: { max: "1e3" } }, "discovery.price must have min, max or both"],
    [{ parameters: [{ name: "a" }] }, "discovery.parameters must be a list of parameters"],
    [{ requestBody: { size: 1n } }, "discovery.requestBody must be an object of JSON"],
    [{ responseSchema: [] }, "discovery.responseSchema must be an object of JSON"],
  ])("refuses the facts %o of a route when the gate is made", (discovery, problem) => {
    const routes = { "GET /a": { accepts: option(), discovery } };
    expect(() =>
      Reflect.apply(paymentMiddleware, undefined, [routes, createPaperFacilitator()]),
    ).toThrow(`"GET /a": ${problem}`);
  });
});
