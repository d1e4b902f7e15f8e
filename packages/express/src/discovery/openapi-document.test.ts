import { listen } from "@coinslot/devnet";
import { validate } from "mppx/discovery";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import {
  appOf,
  documentOf,
  gateOf,
  llmsOf,
  mppSecret,
  usdc,
} from "../testing/discovered-routes.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

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
      // A collection of the heap may fall into one turn, and into one alone.
      const [, second = total] = [...turns].sort((a, b) => b - a);
      expect(second).toBeLessThan(total / 4);
      expect(turns.filter((each) => each > total / 50).length).toBeGreaterThan(8);
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
