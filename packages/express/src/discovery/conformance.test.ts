import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { plasma } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, payTo, type Shop } from "../testing/shop.ts";

const run = promisify(execFile);
const base = "eip155:8453";
const usdc = {
  scheme: "exact",
  network: base,
  price: {
    amount: "10000",
    asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    extra: { name: "USD Coin", version: "2", decimals: 6 },
  },
  payTo,
} as const;

const require = createRequire(import.meta.url);
const programs = {
  mppx: join(dirname(require.resolve("mppx")), "bin.js"),
  discovery: join(dirname(require.resolve("@agentcash/discovery")), "../bin/discovery.js"),
};

/** The output of a program that the tests bring, as JSON. */
async function read(program: keyof typeof programs, ...words: string[]) {
  const { stdout } = await run(process.execPath, [programs[program], ...words, "--json"]);
  return JSON.parse(stdout);
}

describe("the document of a shop", () => {
  let shop: Shop;

  beforeAll(async () => {
    const facilitator = createPaperFacilitator({ networks: [plasma, base] });
    const gate = paymentMiddleware(
      {
        "GET /weather/:city": {
          accepts: [usdc, option({ price: "$0.01" })],
          description: 'The "weather" of <b>a city</b>',
          mimeType: "application/json",
          discovery: {
            parameters: [{ name: "city", in: "path", example: "hamburg" }],
            responseSchema: { type: "object", properties: { forecast: { type: "string" } } },
          },
        },
        "POST /batch": {
          accepts: { ...usdc, price: () => usdc.price },
          discovery: { price: { min: "$0.01", max: "$0.1" } },
        },
        "/reports": { accepts: option({ price: "$0.002" }) },
      },
      facilitator,
      { mpp: { secrets: ["a secret of thirty-two bytes and more"] } },
    );
    await gate.ready();
    shop = await openShop({
      routes: {},
      facilitator,
      serve(app) {
        app.use(
          paymentMiddleware.discovery(gate, {
            title: "Weather",
            contact: { email: "team@example.com" },
          }),
        );
        app.get("/favicon.ico", (_request, response) => {
          response.type("image/x-icon").send(Buffer.alloc(1));
        });
        app.use(gate);
      },
    });
  });

  afterAll(async () => {
    await shop?.close();
  });

  it("is valid for mppx, by URL, without a warning", async () => {
    expect(await read("mppx", "discover", "validate", `${shop.url}/openapi.json`)).toEqual({
      valid: true,
      errorCount: 0,
      warningCount: 0,
      issues: [],
    });
  });

  it("gives @agentcash/discovery each route with price and protocols, without a warning", async () => {
    const found = await read("discovery", shop.url);
    expect(found.warnings.filter(isOfDocument)).toEqual([]);
    expect(found.ok).toBe(true);
    expect(
      found.resources.map(({ method, path, authHint, priceHint, protocols }: Found) => ({
        route: `${method} ${path}`,
        authHint,
        priceHint,
        protocols,
      })),
    ).toEqual([
      {
        route: "GET /weather/{city}",
        authHint: "paid",
        priceHint: "0.01 USD",
        protocols: ["x402", "mpp"],
      },
      {
        route: "POST /batch",
        authHint: "paid",
        priceHint: "0.01-0.1 USD",
        protocols: ["x402", "mpp"],
      },
      { route: "GET /reports", authHint: "paid", priceHint: "0.002 USD", protocols: ["x402"] },
    ]);
  });

  it("gives @agentcash/discovery the inputs and the offers of one URL", async () => {
    const found = await read("discovery", "check", `${shop.url}/weather/hamburg`);
    expect(found.warnings.filter(isOfDocument)).toEqual([]);
    expect(found.advisories).toMatchObject([
      {
        method: "GET",
        estimatedPrice: "0.01 USD",
        inputSchema: { parameters: [{ name: "city", in: "path" }, {}, {}] },
        outputSchema: { properties: { forecast: { type: "string" } } },
      },
    ]);
  });
});

/** It also checks the 402, in whose `extensions.bazaar` it would like to see schemas. */
function isOfDocument({ code, path }: { code: string; path?: string }): boolean {
  const isOfOffer = path?.startsWith("extensions.bazaar.") ?? false;
  return !(isOfOffer && /^SCHEMA_(?:IN|OUT)PUT_MISSING$/.test(code));
}

interface Found {
  method: string;
  path: string;
  authHint: string;
  priceHint: string;
  protocols: string[];
}
