import express, { type Request } from "express";
import supertest from "supertest";
import { expect, test } from "vitest";
import { type ClientKey, limitKeyOf } from "./limit-key.ts";

/** Serves the limit key of each request under the given `trust proxy`. */
function keysOf(options: { trustProxy?: number; clientKey?: ClientKey } = {}) {
  const app = express();
  app.set("trust proxy", options.trustProxy ?? 0);
  app.get("/", (request, response) => {
    response.send(limitKeyOf(request, options.clientKey));
  });
  return async (headers: Record<string, string> = {}) => {
    const { text } = await supertest(app).get("/").set(headers);
    return text;
  };
}

test("a caller without a trusted proxy is limited by its peer address", async () => {
  const keyOf = keysOf();
  expect(await keyOf({ "X-Forwarded-For": "203.0.113.9" })).toBe("address 127.0.0.1");
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["203.0.113.9:4711", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["::ffff:cb00:7109", "203.0.113.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:DB8:1:2::ffff", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::1]:443", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["64:ff9b::203.0.113.9", "64:ff9b:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
])("an address %s from a trusted proxy is limited as %s", async (forwarded, key) => {
  const keyOf = keysOf({ trustProxy: 1 });
  expect(await keyOf({ "X-Forwarded-For": forwarded })).toBe(`address ${key}`);
});

test.each(["unknown", "_hidden", "not an address", "1.2.3", "::1::2", "a".repeat(4_000)])(
  "forwarded text that is not an address is limited by the proxy's address",
  async (forwarded) => {
    const keyOf = keysOf({ trustProxy: 1 });
    expect(await keyOf({ "X-Forwarded-For": forwarded })).toBe("address 127.0.0.1");
  },
);

test("a client key takes precedence over the address, and never equals one", async () => {
  const clientKey = (request: Request) => request.get("X-Client");
  const keyOf = keysOf({ clientKey });
  expect(await keyOf({ "X-Client": "shop" })).toBe("client shop");
  expect(await keyOf({ "X-Client": "127.0.0.1" })).toBe("client 127.0.0.1");
  expect(await keyOf()).toBe("address 127.0.0.1");
});

test("a long client key is stored as a short hash of its own", async () => {
  const keyOf = keysOf({ clientKey: (request) => request.get("X-Client") });
  const [one, two] = [
    await keyOf({ "X-Client": "a".repeat(9_000) }),
    await keyOf({ "X-Client": "a".repeat(9_001) }),
  ];
  expect(one.length).toBeLessThanOrEqual(136);
  expect(one).not.toBe(two);
});
