import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import express from "express";
import { expect, it } from "vitest";
import { createPathRouter } from "./path-router.ts";
import { readRoutes } from "./read-routes.ts";

const payTo = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const price = {
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  extra: { name: "USDT0", version: "1" },
};

function createRouter(key = "GET /files/:name") {
  const accepts = [{ scheme: "exact" as const, network: "eip155:9745" as const, payTo, price }];
  const router = express.Router();
  const routes = readRoutes({ [key]: { accepts } }, router, (problem) => {
    throw new Error(problem);
  });
  const settings = { caseSensitive: false, strict: false };
  return { routes, find: createPathRouter({ router, routes, settings }) };
}

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

it("the path router ignores the query of a path", () => {
  const { routes, find } = createRouter();
  for (const path of ["/files/a", "/files/a?b", "/files/a?c", `/files/a?${"d".repeat(9_000)}`]) {
    expect(find("GET", [path])).toBe(routes[0]);
    expect(find("GET", [path.replace("files", "free")])).toBeUndefined();
  }
});

it("the path router has one router for all unlisted methods, also from method overrides", () => {
  const { routes, find } = createRouter();
  const before = heapBytes();
  for (let count = 0; count < 2_000; count += 1) {
    expect(find(`method-${count}`, ["/files/a"])).toBeUndefined();
  }
  expect(heapBytes() - before).toBeLessThan(500_000);
  expect(find("get", ["/files/a"])).toBe(routes[0]);
});

it("the path router reads a method in lower case, as Express does: the sign of Kelvin is a k", () => {
  const { routes, find } = createRouter("LOCK /files/:name");
  for (const method of ["LOCK", "lock", "LOC\u212a"]) {
    expect(find(method, ["/files/a"])).toBe(routes[0]);
  }
});

it("the path router caches paths without their queries", () => {
  const { find } = createRouter();
  // A flat string, as an HTTP parser makes it.
  const target = (name: string) =>
    Buffer.from(`/files/${name}?${"q".repeat(15_000)}`).toString("latin1");
  find("GET", [target("first")]);

  const before = heapBytes();
  for (let count = 0; count < 400; count += 1) find("GET", [target(`a-file-${count}`)]);

  expect(heapBytes() - before).toBeLessThan(2_000_000);
});
