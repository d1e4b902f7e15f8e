import { paymentMiddleware } from "@coinslot/express";
import { ConfigurationError } from "@coinslot/protocol";
import type { PaywallConfig, RouteConfig } from "@x402/core/server";
import type { AssetAmount } from "@x402/core/types";
import { describe, expect, it } from "vitest";
import type { RouteConfig as RouteConfigV1 } from "x402/types";
import { readDocument } from "./code-block.ts";

type PaymentOption = Exclude<RouteConfig["accepts"], unknown[]>;
type ConfigV1 = NonNullable<RouteConfigV1["config"]>;

// Their keys are checked by the compiler: a member that the reference adds is missing here.
const body = () => ({ contentType: "text/plain", body: "" });
const price: Record<keyof AssetAmount, unknown> = {
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  extra: { name: "USDT0", version: "1" },
};
const option: Record<keyof PaymentOption, unknown> = {
  scheme: "exact",
  network: "eip155:9745",
  payTo: "0x00000000000000000000000000000000000beef1",
  price,
  maxTimeoutSeconds: 120,
  extra: { note: "any" },
};
const route: Record<keyof RouteConfig, unknown> = {
  accepts: option,
  resource: "https://shop.example/weather",
  description: "Weather",
  mimeType: "text/plain",
  serviceName: "Weather",
  tags: ["weather"],
  iconUrl: "https://shop.example/icon.png",
  customPaywallHtml: "<p>Pay</p>",
  unpaidResponseBody: body,
  settlementFailedResponseBody: body,
  extensions: {},
};
const routeV1: Record<keyof RouteConfigV1, unknown> = { price: "$1", network: "base", config: {} };
const configV1: Record<keyof ConfigV1, unknown> = {
  description: "Weather",
  mimeType: "text/plain",
  maxTimeoutSeconds: 120,
  inputSchema: {},
  outputSchema: {},
  discoverable: true,
  customPaywallHtml: "<p>Pay</p>",
  resource: "https://shop.example/weather",
  errorMessages: {},
};
const pages: Record<keyof PaywallConfig, unknown> = {
  appName: "Shop",
  appLogo: "/logo.png",
  sessionTokenEndpoint: "/token",
  currentUrl: "https://shop.example",
  testnet: true,
};

const facilitator = {
  verify: () => undefined,
  settle: () => undefined,
  getSupported: () => new Promise(() => undefined),
};

/** The faults reported at a start with this route and these options. */
function problemsOf(sold: object, options: object = {}): string {
  try {
    Reflect.apply(paymentMiddleware, undefined, [{ "GET /a": sold }, facilitator, options]);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems.join("\n");
    throw error;
  }
  return "";
}

interface Row {
  name: string;
  here: string;
}

/** The rows of each table that maps the reference's members. */
const tables: Row[][] = readDocument("docs/moving.md")
  .split(/\n(?!\|)/)
  .filter((part) => /^\s*\|[^|]*\| Here \|/.test(part))
  .map((part) => {
    const [, , ...rows] = part.trim().split("\n");
    return rows.map((row) => {
      const [, member = "", here = ""] = row.split("|").map((cell) => cell.trim());
      return { name: member.replaceAll("`", ""), here };
    });
  });

function hereOf(names: readonly string[]): Row[] {
  const key = names.toSorted().join();
  const found = tables.find(
    (rows) =>
      rows
        .map(({ name }) => name)
        .toSorted()
        .join() === key,
  );
  return found ?? [];
}

describe("the page on moving", () => {
  const bare = { accepts: option };
  const cases: [string, object, (name: string, value: unknown) => string][] = [
    ["a route", route, (name, value) => problemsOf({ ...bare, [name]: value })],
    ["a way to pay", option, () => problemsOf(bare)],
    ["a price in a token", price, () => problemsOf(bare)],
    ["a route of version 1", routeV1, (name, value) => problemsOf({ ...bare, [name]: value })],
    ["its config", configV1, (name, value) => problemsOf({ ...bare, [name]: value })],
  ];

  it.each(cases)("covers every member of %s, correctly", (_case, members, start) => {
    const rows = hereOf(Object.keys(members));
    expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(members).toSorted());
    for (const { name, here } of rows) {
      const problems = start(name, Reflect.get(members, name));
      if (here === "taken") expect(problems).toBe("");
      else
        expect({ name, here, problems }).toMatchObject({
          here: "refused",
          problems: expect.stringContaining(name),
        });
    }
  });

  it("covers every option of the browser pages, correctly", () => {
    const rows = tables.flat();
    for (const [name, value] of Object.entries(pages)) {
      expect(rows).toContainEqual({ name, here: "refused" });
      expect(problemsOf(bare, { [name]: value })).toContain(name);
    }
  });
});
