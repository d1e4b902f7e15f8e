import { gzipSync } from "node:zlib";
import {
  ConfigurationError,
  type PageDemand,
  type PaymentRequirements,
  plasma,
  plasmaUsdt0,
} from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { type PaywallOptions, paywall } from "./index.ts";

const hostile = `"'><script>alert(1)</script><!--<img src=x onerror=alert(2)>&\u2028\u202e`;

const way: PaymentRequirements = {
  scheme: "exact",
  network: plasma,
  amount: "1500",
  asset: plasmaUsdt0.address,
  payTo: "0x00000000000000000000000000000000000beef1",
  maxTimeoutSeconds: 60,
  extra: { name: "USDT0", version: "1" },
};

function write(change: Partial<PageDemand> = {}, options: PaywallOptions = {}): string {
  return paywall(options).writePage({
    method: "GET",
    resource: { url: "https://api.example.com/report?week=47", description: "Report of the week" },
    accepts: [way],
    form: { state: "none" },
    command: 'npx @coinslot/cli pay "https://api.example.com/report?week=47"',
    languages: "en",
    accept: "text/html",
    nonce: "a-nonce",
    ...change,
  });
}

describe("the document", () => {
  it("has at most 15 KB gzipped in every language, with script, style and QR code", () => {
    for (const languages of ["en", "de", "zh", "es"]) {
      expect(gzipSync(write({ languages })).length).toBeLessThan(15_000);
    }
  });

  it("loads nothing: all it has is inline, under its nonce", () => {
    const html = write();
    const elements = html.match(/<(?:script|style|link|img|iframe|object)\b[^>]*>/g);
    expect(elements).toEqual([
      '<link rel="icon" href="data:,">',
      '<style nonce="a-nonce">',
      '<script type="application/json" id="data">',
      '<script type="module" nonce="a-nonce">',
    ]);
    expect(html).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|eval\(/);
  });

  it("escapes every text of a buyer, a seller and a translator", () => {
    const html = write(
      {
        method: hostile,
        resource: { url: `https://a.example/${hostile}`, description: hostile, mimeType: hostile },
        accepts: [
          { ...way, extra: { name: hostile, version: hostile, decimals: hostile } },
          { ...way, asset: way.payTo, extra: { name: hostile, version: "1" } },
        ],
        form: { state: "kept", body: hostile },
        command: hostile,
        languages: hostile,
        accept: hostile,
      },
      { name: hostile.slice(0, 80), texts: { title: hostile, choose: hostile, details: hostile } },
    );
    const scripts = html.match(/<script/g);
    expect(scripts).toHaveLength(2);
    expect(html).not.toContain("<img");
    expect(html).not.toContain("<!--");
    expect(html).not.toContain("\u202e</");
    const [, json = ""] = /id="data">([^<]*)<\/script>/.exec(html) ?? [];
    expect(JSON.parse(json)).toMatchObject({ method: hostile, form: { body: hostile } });
  });

  it("shows the price in whole tokens, and in units of a token that it does not know", () => {
    expect(write()).toContain("<b>0.0015</b> USDT0 <span>on Plasma</span>");
    const unknown = { ...way, asset: way.payTo, extra: { name: "Gold", version: "1" } };
    expect(write({ accepts: [unknown] })).toContain("<b>1500</b> Gold");
    const decimals = { ...unknown, extra: { ...unknown.extra, decimals: 3 } };
    expect(write({ accepts: [decimals] })).toContain("<b>1.5</b> Gold");
  });

  it("gives wallets no way that they cannot sign", () => {
    const permit2 = { ...way, extra: { ...way.extra, assetTransferMethod: "permit2" } };
    const noDomain = { ...way, extra: { decimals: 6 } };
    expect(write({ accepts: [permit2, noDomain] })).toContain('"ways":[]');
    expect(write({ accepts: [permit2, way] }).match(/"chainId":9745/g)).toHaveLength(1);
  });

  it("leaves the QR code out for a long URL, and for a form", () => {
    expect(write()).toContain("<svg");
    expect(write({ resource: { url: `https://a.example/${"x".repeat(300)}` } })).not.toContain(
      "<svg",
    );
    expect(write({ form: { state: "kept", body: "a=1" } })).not.toContain("<svg");
  });

  it("speaks the language that is preferred, or the seller's", () => {
    const languageOf = (languages: string, options: PaywallOptions = {}) =>
      /<html lang="(\w+)">/.exec(write({ languages }, options))?.[1];
    expect(languageOf("fr, de;q=0.5, es;q=0.7")).toBe("es");
    expect(languageOf("zh-Hant-TW")).toBe("zh");
    expect(languageOf("de;q=0")).toBe("en");
    expect(languageOf("")).toBe("en");
    expect(languageOf("de", { language: "zh" })).toBe("zh");
  });

  it("has the seller's name, logo, colours, texts and chains", () => {
    const html = write(
      { accepts: [{ ...way, network: "eip155:31337" }] },
      {
        name: "Weather Ltd",
        logo: "/logo.svg",
        accent: { light: "#0a7447", dark: "#55c892" },
        texts: { choose: "With which wallet?" },
        chains: {
          "eip155:31337": {
            name: "Our chain",
            rpcUrls: ["http://127.0.0.1:8545"],
            nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
            explorer: "http://127.0.0.1:9999/",
          },
        },
      },
    );
    expect(html).toContain('<img src="/logo.svg" alt="" width="32" height="32">Weather Ltd');
    expect(html).toContain(":root{--accent:#0a7447;--on-accent:#ffffff}");
    expect(html).toContain(":root{--accent:#55c892;--on-accent:#000000}");
    expect(html).toContain("With which wallet?");
    expect(html).toContain("on Our chain");
    expect(html).toContain('"explorer":"http://127.0.0.1:9999/tx/{hash}"');
  });

  it.each([
    ["a logo of another origin", { logo: "https://evil.example/x.svg" }],
    ["a logo without a scheme", { logo: "//evil.example/x.svg" }],
    ["a logo that is a page", { logo: "data:text/html,<script>" }],
    ["a colour that is more", { accent: "#fff}*{display:none" }],
    ["an unknown text", { texts: { headline: "x" } }],
    ["an unknown option", { appName: "x" }],
    ["an unknown language", { language: "fr" }],
    [
      "an explorer that runs scripts",
      {
        chains: {
          "eip155:1": {
            name: "x",
            rpcUrls: ["https://a.example"],
            nativeCurrency: { name: "x", symbol: "x", decimals: 18 },
            explorer: "javascript:alert(1)",
          },
        },
      },
    ],
  ])("refuses %s", (_name, options) => {
    expect(() => paywall(options as PaywallOptions)).toThrow(ConfigurationError);
  });
});
