import { ConfigurationError } from "@coinslot/protocol";
import { afterEach, describe, expect, it, vi } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { fetchOffer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

const routes = { "GET /paid/:size": { accepts: option() } };

async function open(publicUrl: string | undefined, trust?: string): Promise<Shop> {
  const shop = await openShop({
    routes,
    options: { publicUrl },
    before: (app) => void (trust && app.set("trust proxy", trust)),
    serve: () => undefined,
  });
  opened.push(shop);
  return shop;
}

/** The resource that an offer names, in each version. */
async function resourcesOf(url: string, headers: Record<string, string> = {}) {
  const [v1, v2] = await Promise.all(
    [1, 2].map((version) => fetchOffer(url, version === 1 ? 1 : 2, { headers })),
  );
  const [first] = v1?.accepts ?? [];
  return [first?.x402Version === 1 ? first.resourceUrl : undefined, v2?.resource?.url];
}

describe("the public URL", () => {
  it.each([
    ["https://api.example.com", "https://api.example.com/paid/1?a=b"],
    ["https://API.example.com:443/", "https://api.example.com/paid/1?a=b"],
    ["http://api.example.com:8080", "http://api.example.com:8080/paid/1?a=b"],
    ["https://example.com/api/", "https://example.com/api/paid/1?a=b"],
    ["https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/paid/1?a=b"],
  ])("%s is the base of the resource in offers", async (publicUrl, expected) => {
    const shop = await open(publicUrl);
    expect(await resourcesOf(`${shop.url}/paid/1?a=b`)).toEqual([expected, expected]);
  });

  it("takes precedence over a proxy's headers, trusted or not", async () => {
    const headers = { "X-Forwarded-Host": "other.example", "X-Forwarded-Proto": "https" };
    const shop = await open("https://api.example.com", "loopback");
    const expected = "https://api.example.com/paid/1";
    expect(await resourcesOf(`${shop.url}/paid/1`, headers)).toEqual([expected, expected]);
  });

  it("defaults to a trusted proxy's headers, then to the request", async () => {
    const headers = { "X-Forwarded-Host": "api.example.com:8443", "X-Forwarded-Proto": "https" };
    const behind = await open(undefined, "loopback");
    const proxied = "https://api.example.com:8443/paid/1";
    expect(await resourcesOf(`${behind.url}/paid/1`, headers)).toEqual([proxied, proxied]);
    const direct = await open(undefined);
    const asked = `${direct.url}/paid/1`;
    expect(await resourcesOf(asked, headers)).toEqual([asked, asked]);
  });

  it.each([
    "api.example.com",
    "/api",
    "",
    "ftp://api.example.com",
    "https://",
    "https:///path",
    "https://user:secret@api.example.com",
    "https://api.example.com?a=b",
    "https://api.example.com#a",
    " https://api.example.com",
    `https://api.example.com/${"x".repeat(1024)}`,
    7,
  ])("is refused at start as %j, without repeating it", (publicUrl) => {
    const make = () =>
      // A seller in plain JavaScript may pass anything.
      Reflect.apply(paymentMiddleware, undefined, [
        routes,
        createPaperFacilitator(),
        { publicUrl },
      ]);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow("options.publicUrl must be an address such as https://api.example.com");
    expect(make).not.toThrow("secret");
  });

  it("is read from the environment with the facilitator, and refused there by its name", () => {
    vi.stubEnv("COINSLOT_PUBLIC_URL", "api.example.com");
    expect(() => paymentMiddleware(routes)).toThrow("COINSLOT_PUBLIC_URL must be an address");
    expect(() => paymentMiddleware(routes, createPaperFacilitator())).not.toThrow();
    vi.stubEnv("COINSLOT_PUBLIC_URL", "https://api.example.com");
    expect(() => paymentMiddleware(routes)).not.toThrow("COINSLOT_PUBLIC_URL");
  });
});
