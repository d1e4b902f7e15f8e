import { createPayingFetch, PaymentError } from "@coinslot/client";
import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { type PaymentMiddlewareOptions, paymentMiddleware } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { decodePaymentRequired, headerName } from "@coinslot/protocol";
import express from "express";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { readCodeBlocks } from "../docs/code-block.ts";
import { balanceOf } from "../support/balance.ts";
import { createReferenceFetch } from "../support/reference.ts";
import { type ReverseProxy, startCaddy, startNginx } from "../support/reverse-proxy.ts";
import { createTestFacilitator, priceOfWeather } from "../support/seller.ts";

let devnet: Devnet;
let facilitator: CoinslotFacilitator;
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

afterAll(async () => {
  await facilitator?.close();
  await devnet?.stop();
});

interface Seller {
  options?: PaymentMiddlewareOptions;
  trustProxy?: string;
  /** Number of ways to pay in each offer. */
  ways?: number;
}

async function openSeller({ options = {}, trustProxy, ways = 1 }: Seller): Promise<Listening> {
  const app = express();
  if (trustProxy !== undefined) app.set("trust proxy", trustProxy);
  const price = {
    amount: priceOfWeather.toString(),
    asset: devnet.token,
    extra: { name: "USDT0", version: "1", decimals: 6 },
  };
  const { network, accounts } = devnet;
  const way = { scheme: "exact", network, payTo: accounts.seller.address, price } as const;
  const routes = { "GET /weather": { accepts: Array.from({ length: ways }, () => way) } };
  const gate = paymentMiddleware(routes, facilitator, options);
  app.use(gate);
  app.get("/weather", (_request, response) => {
    response.json({ forecast: "sun" });
  });
  await gate.ready();
  const listening = await listen(app);
  ends.push(listening.close);
  return listening;
}

function keep(proxy: ReverseProxy): ReverseProxy {
  ends.push(proxy.stop);
  return proxy;
}

/** The buyers' host, on a port of its own. */
const shop = "https://shop.example:8443";

async function resourceBehind(proxy: ReverseProxy, url: string): Promise<string | undefined> {
  const response = await proxy.fetch(url);
  expect(response.status).toBe(402);
  return decodePaymentRequired(response.headers.get(headerName.paymentRequired) ?? "").resource
    ?.url;
}

function ourFetch(proxy: ReverseProxy) {
  const rpcUrls = { [devnet.network]: devnet.rpcUrl };
  const { buyer: account } = devnet.accounts;
  const { token: address } = devnet;
  const asset = { network: devnet.network, address, name: "USDT0", version: "1", decimals: 6 };
  const budget = { assets: [{ ...asset, isDollar: true as const }] };
  return createPayingFetch({ account, rpcUrls, budget, fetch: proxy.fetch });
}

/** Both clients buy, and pay. */
async function expectSold(proxy: ReverseProxy, url: string): Promise<void> {
  const reference = createReferenceFetch(devnet, devnet.accounts.buyer, proxy.fetch);
  for (const pay of [ourFetch(proxy), reference]) {
    const before = await balanceOf(devnet, devnet.accounts.seller.address);
    const response = await pay(url);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ forecast: "sun" });
    const earned = (await balanceOf(devnet, devnet.accounts.seller.address)) - before;
    expect(earned).toBe(priceOfWeather);
  }
}

/** Headers of usual nginx configurations, and the resulting resource. */
const configurations: {
  what: string;
  server: (port: number) => string;
  http?: (port: number) => string;
  path?: string;
  trustProxy?: string;
  resource: (port: number) => string;
}[] = [
  {
    what: "a plain proxy_pass",
    server: (port) => `location / { proxy_pass http://127.0.0.1:${port}; }`,
    resource: (port) => `http://127.0.0.1:${port}/weather`,
  },
  {
    what: "an upstream block",
    http: (port) => `upstream backend { server 127.0.0.1:${port}; }`,
    server: () => "location / { proxy_pass http://backend; }",
    resource: () => "http://backend/weather",
  },
  {
    what: "Host $host, which has no port",
    server: (port) =>
      `location / { proxy_pass http://127.0.0.1:${port}; proxy_set_header Host $host; }`,
    resource: () => "http://shop.example/weather",
  },
  {
    what: "Host $http_host",
    server: (port) =>
      `location / { proxy_pass http://127.0.0.1:${port}; proxy_set_header Host $http_host; }`,
    resource: () => "http://shop.example:8443/weather",
  },
  {
    what: "Host $host and X-Forwarded headers that the application trusts",
    trustProxy: "loopback",
    server: (port) => `location / {
      proxy_pass http://127.0.0.1:${port};
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto https;
    }`,
    resource: () => "https://shop.example/weather",
  },
  {
    what: "a path that is cut off",
    path: "/api/weather",
    server: (port) => `location /api/ { proxy_pass http://127.0.0.1:${port}/; }`,
    resource: (port) => `http://127.0.0.1:${port}/weather`,
  },
];

describe.each(configurations)("behind nginx with $what", (configuration) => {
  const { server, http, path = "/weather", trustProxy, resource } = configuration;

  async function openBehind(options: PaymentMiddlewareOptions = {}) {
    const { port } = await openSeller({ options, ...(trustProxy && { trustProxy }) });
    const proxy = await startNginx({ server: server(port), http: http?.(port) ?? "" });
    return { port, proxy: keep(proxy) };
  }

  it("our client and the reference's buy", async () => {
    const { port, proxy } = await openBehind();
    expect(await resourceBehind(proxy, shop + path)).toBe(resource(port));
    await expectSold(proxy, shop + path);
  });

  it("the offer names the public URL where one is set", async () => {
    const publicUrl = shop + path.replace(/\/weather$/, "");
    const { proxy } = await openBehind({ publicUrl });
    expect(await resourceBehind(proxy, shop + path)).toBe(shop + path);
    await expectSold(proxy, shop + path);
  });
});

describe("behind nginx that requests another public host name of the upstream", () => {
  it("our client signs nothing, and names both hosts; a public URL fixes it", async () => {
    const server = (port: number) =>
      `location / { proxy_pass http://127.0.0.1:${port}; proxy_set_header Host up.example.net; }`;
    const hidden = await openSeller({});
    const refusing = keep(await startNginx({ server: server(hidden.port) }));
    const before = await balanceOf(devnet, devnet.accounts.seller.address);
    const error = await ourFetch(refusing)(`${shop}/weather`).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PaymentError);
    expect(error).toMatchObject({ code: "resource_mismatch", moneyMayHaveMoved: false });
    expect(String(error)).toContain("shop.example:8443 offers a resource of up.example.net");
    expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(before);

    const mended = await openSeller({ options: { publicUrl: shop } });
    await expectSold(keep(await startNginx({ server: server(mended.port) })), `${shop}/weather`);
  });
});

describe("behind a proxy as documented", () => {
  /** The block of a document, for an upstream on another port. */
  function documented(language: string, port: number): string {
    const [block] = readCodeBlocks("docs/operating.md").filter(
      (each) => each.language === language,
    );
    expect(block?.text).toContain("127.0.0.1:4021");
    return (block?.text ?? "").replace("127.0.0.1:4021", `127.0.0.1:${port}`);
  }

  const proxies = [
    ["nginx", (port: number) => startNginx({ server: documented("nginx", port) })],
    [
      "Caddy",
      (port: number) => startCaddy(documented("caddyfile", port).replace(/^[^{]*\{|\}\s*$/g, "")),
    ],
  ] as const;

  it.each(proxies)("%s passes on the requested host, and both clients buy", async (_, open) => {
    const { port } = await openSeller({ trustProxy: "loopback" });
    const proxy = keep(await open(port));
    expect(await resourceBehind(proxy, `${shop}/weather`)).toBe("http://shop.example:8443/weather");
    await expectSold(proxy, `${shop}/weather`);
  });

  it.each(proxies)("%s lets no buyer set another host", async (_, open) => {
    const { port } = await openSeller({ trustProxy: "loopback" });
    const proxy = keep(await open(port));
    const headers = { "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "ftp" };
    const spoofed: typeof fetch = (input, init) =>
      proxy.fetch(new Request(input, { ...init, headers }));
    expect(await resourceBehind({ ...proxy, fetch: spoofed }, `${shop}/weather`)).toBe(
      "http://shop.example:8443/weather",
    );
  });

  it.each(proxies)("%s passes on an offer of sixteen payment options", async (_, open) => {
    const { port } = await openSeller({ trustProxy: "loopback", ways: 16 });
    const proxy = keep(await open(port));
    const response = await proxy.fetch(`${shop}/weather`);
    expect(response.status).toBe(402);
    const header = response.headers.get(headerName.paymentRequired) ?? "";
    expect(decodePaymentRequired(header).accepts).toHaveLength(16);
    await expectSold(proxy, `${shop}/weather`);
  });
});
