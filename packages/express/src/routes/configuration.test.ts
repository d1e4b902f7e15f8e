import { ConfigurationError } from "@coinslot/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option } from "../testing/shop.ts";

/** Options that TypeScript would refuse, as plain JavaScript may pass them. */
function problemsOf(routes: object, options: object = {}): readonly string[] {
  try {
    Reflect.apply(paymentMiddleware, undefined, [routes, createPaperFacilitator(), options]);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe("the route configuration", () => {
  it("reports all of its faults in one error", () => {
    const problems = problemsOf({
      "FETCH /a": { accepts: option() },
      "GET,POST /b": { accepts: option() },
      "GET c": { accepts: option() },
      "GET /d?x=1": { accepts: option() },
      "GET /e": { accepts: [option({ price: "$0.0000001" }), option({ price: "$0" })] },
      "GET /f": { accepts: [option({ network: "eip155:4242" })], maxTimeoutSecs: 3 },
    });
    expect(problems).toEqual([
      expect.stringContaining('"FETCH /a" has the unknown method "FETCH"'),
      expect.stringContaining('"GET,POST /b" has the unknown method "GET,POST"'),
      expect.stringContaining('"GET c" has a path that does not begin with "/"'),
      expect.stringContaining('"GET /d?x=1" names a query'),
      expect.stringContaining('"GET /e": accepts[0].price "$0.0000001" is no exact amount'),
      expect.stringContaining('"GET /e": accepts[1].price "$0" is zero'),
      expect.stringContaining('"GET /f": has an unknown member: maxTimeoutSecs'),
    ]);
  });

  it.each([
    ["GET /items/rare", "GET /items/:id"],
    ["HEAD /items/rare", "GET /items/:id"],
    ["POST /items/rare", "/items/:id"],
    ["* /items/:id", "/items/:id"],
    ["GET /files/a%20b/c.txt", "GET /files/*rest"],
  ])("reports that %s can never match after %s", (later, earlier) => {
    const accepts = option();
    const others = { "POST /other": { accepts }, "GET /other": { accepts } };
    expect(problemsOf({ [earlier]: { accepts }, ...others, [later]: { accepts } })).toEqual([
      `"${later}" can never match: "${earlier}" comes before it and matches all of its requests`,
    ]);
    expect(problemsOf({ [later]: { accepts }, ...others, [earlier]: { accepts } })).toHaveLength(
      later === "* /items/:id" ? 1 : 0,
    );
  });

  it.each([
    ["* /items/rare", "GET /items/:id"],
    ["GET /items/rare", "HEAD /items/:id"],
    ["GET /items/:id", "GET /items/rare"],
    ["GET /ITEMS", "GET /items"],
    ["GET /items/", "GET /items"],
    ["GET /items/:id", "GET /items/:name/more"],
  ])("accepts %s after %s", (later, earlier) => {
    const accepts = option();
    expect(problemsOf({ [earlier]: { accepts }, [later]: { accepts } })).toEqual([]);
  });

  it("reports a network that the facilitator does not serve", () => {
    expect(problemsOf({ "GET /a": { accepts: option({ network: "eip155:4242" }) } })).toEqual([
      '"GET /a": the facilitator does not serve eip155:4242',
    ]);
  });

  it.each([
    ["no payment option", { accepts: [] }],
    ["a scheme that is not exact", { accepts: { ...option(), scheme: "upto" } }],
    ["a network by its legacy name", { accepts: { ...option(), network: "base" } }],
    [
      "a recipient with a typing error",
      { accepts: { ...option(), payTo: "0xb8CE59FC3717ada4C02eaDF9682A9e934F625ebb" } },
    ],
    ["the zero address as recipient", { accepts: { ...option(), payTo: `0x${"0".repeat(40)}` } }],
    [
      "an asset without a domain",
      { accepts: { ...option(), price: { amount: "1", asset: option().payTo } } },
    ],
    [
      "an amount that is a number",
      {
        accepts: {
          ...option(),
          price: { amount: 1, asset: option().payTo, extra: { name: "USDT0", version: "1" } },
        },
      },
    ],
    ["a header name outside a list", { accepts: option(), varyHeaders: "X-Size" }],
    ["a header without a name", { accepts: option(), varyHeaders: ["X-Size", ""] }],
    ["an amount with an exponent", { accepts: { ...option(), price: "1e3" } }],
    [
      "a dollar price on a network without a known token",
      { accepts: option({ network: "eip155:4242", price: "$1" }) },
    ],
    [
      "a handler timeout above the payment's validity",
      { accepts: option(), maxTimeoutSeconds: 60 },
    ],
    ["a timeout that is not positive", { accepts: option(), handlerTimeoutSeconds: 0 }],
    ["an unknown flow", { accepts: option(), paymentFlow: "later" }],
    ["an unknown onDisconnect", { accepts: option(), onDisconnect: "ignore" }],
    [
      "a description that does not fit a header",
      { accepts: option(), description: "x".repeat(2000) },
    ],
    [
      "an offer that does not fit a header",
      { accepts: Array.from({ length: 16 }, () => option({ extra: { more: "x".repeat(900) } })) },
    ],
    ["nothing", undefined],
  ])("refuses %s", (_case, payment) => {
    expect(problemsOf({ "GET /a": payment })).toHaveLength(1);
  });

  it("accepts sixteen payment options of the usual length", () => {
    const accepts = Array.from({ length: 16 }, () => option());
    expect(problemsOf({ "GET /a": { accepts } })).toEqual([]);
  });

  it.each(["GET /a/../b", "GET //a", "GET /a#b", "", "GET /a/:", "GET /(("])(
    "refuses the key %j, which can never match",
    (key) => {
      expect(problemsOf({ [key]: { accepts: option() } })).toHaveLength(1);
    },
  );

  it.each(["GET /a", "get /a", "* /a", "/a", "GET  /a/:id", "QUERY /a", "GET /a/*rest"])(
    "accepts the key %j",
    (key) => {
      expect(problemsOf({ [key]: { accepts: option() } })).toEqual([]);
    },
  );

  it("refuses unknown options, and hooks that are not functions", () => {
    expect(problemsOf({}, { grantAcces: () => true, onError: "log", maxRequestBytes: -1 })).toEqual(
      [
        "options.grantAcces is unknown",
        "options.onError must be a function",
        "options.maxRequestBytes must be a whole number of bytes",
      ],
    );
  });

  it("reports a fault of a route beside its handler, too", () => {
    expect(() =>
      paymentMiddleware.route({ accepts: [option({ price: "$0" })] }, createPaperFacilitator()),
    ).toThrow(/price "\$0" is zero/);
  });

  it("takes a name for a route beside its handler alone, and none that a switch cannot have", () => {
    const facilitator = createPaperFacilitator();
    const named = (name: string) => () =>
      paymentMiddleware.route({ name, accepts: option() }, facilitator);
    expect(named("GET /report")).not.toThrow();
    for (const name of ["", "a\nb", "a".repeat(501), "☕️🍰".repeat(200)])
      expect(named(name)).toThrow(/name must be/);
    expect(problemsOf({ "GET /a": { name: "GET /report", accepts: option() } })).toEqual([
      '"GET /a": has an unknown member: name',
    ]);
  });
});

describe("the environment configuration", () => {
  const saved = { ...process.env };

  afterEach(() => {
    process.env = { ...saved };
  });

  it("is read when no facilitator is passed, and all missing settings are reported at once", () => {
    for (const name of Object.keys(process.env)) {
      if (/^(COINSLOT|FACILITATOR)_/.test(name)) delete process.env[name];
    }
    expect(() => paymentMiddleware({ "GET /a": { accepts: option() } })).toThrow(
      /COINSLOT_NETWORK[\s\S]*COINSLOT_RPC_URL[\s\S]*FACILITATOR_SEED_PHRASE/,
    );
  });
});
