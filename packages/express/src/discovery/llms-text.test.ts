import { ConfigurationError } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { documentOf, gateOf, llmsOf, usdc } from "../testing/discovered-routes.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

function problemsOf(gates: unknown, options: unknown = {}): readonly string[] {
  try {
    Reflect.apply(paymentMiddleware.discovery, undefined, [gates, options]);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

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
