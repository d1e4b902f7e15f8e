import { request as sendRaw } from "node:http";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { stands, startApi } from "./testing/api-server.ts";
import { alice } from "./testing/transfers.ts";
import { errorBody } from "./wire/error.ts";

const history = `/api/v1/plasma/usdt/${alice}/token-transfers`;
const balance = `/api/v1/plasma/usdt/${alice}/token-balances`;
const item = { blockchain: "plasma", token: "usdt", address: alice };

/** Paths that return 400, and words of the message. */
const badPaths = [
  [`/api/v1/atlantis/usdt/${alice}/token-transfers`, "plasma, stable"],
  [`/api/v1/plasma/doge/${alice}/token-transfers`, "usdt, xaut"],
  [`/api/v1/stable/xaut/${alice}/token-balances`, "usdt"],
  [`/api/v1/Plasma/usdt/${alice}/token-balances`, "plasma"],
  [`/api/v1/__proto__/usdt/${alice}/token-balances`, "plasma"],
  ["/api/v1/plasma/usdt/0x12/token-transfers", "address"],
  ["/api/v1/plasma/usdt/alice/token-balances", "address"],
  [`/api/v1/plasma/usdt/${alice}00/token-balances`, "address"],
  [`/api/v1/plasma/usdt/0x${"g".repeat(40)}/token-balances`, "address"],
  [`/api/v1/plasma/usdt/${alice}%0a/token-balances`, "address"],
  [`/api/v1/plasma/usdt/%00/token-balances`, "address"],
  [`/api/v1/plasma/usdt/${"a".repeat(5_000)}/token-balances`, "address"],
  ["/api/v1/plasma/usdt/%zz/token-balances", "percent"],
  [`${history}?limit=0`, "1 to 1000"],
  [`${history}?limit=1001`, "1 to 1000"],
  [`${history}?limit=-1`, "1 to 1000"],
  [`${history}?limit=ten`, "1 to 1000"],
  [`${history}?limit=`, "1 to 1000"],
  [`${history}?limit=1.5`, "1 to 1000"],
  [`${history}?limit=1e2`, "1 to 1000"],
  [`${history}?limit=0x10`, "1 to 1000"],
  [`${history}?limit=%2010`, "1 to 1000"],
  [`${history}?limit=10&limit=20`, "limit"],
  [`${history}?limit=99999999999999999999`, "1 to 1000"],
  [`${history}?fromTs=-1`, "fromTs"],
  [`${history}?fromTs=yesterday`, "fromTs"],
  [`${history}?fromTs=9007199254740993`, "fromTs"],
  [`${history}?toTs=NaN`, "toTs"],
  [`${history}?fromTs=1700000002000&toTs=1700000001000`, "after toTs"],
  [`${history}?fromTs=1700000002&toTs=1700000001`, "after toTs"],
  // Seconds and milliseconds in one request are compared as times.
  [`${history}?fromTs=1700000002&toTs=1700000001000`, "after toTs"],
  [`${history}?sort=newest`, "asc or desc"],
  [`${history}?cursor=`, "Link"],
  [`${history}?cursor=abc`, "Link"],
  [`${history}?cursor=1-2-3`, "Link"],
  [`${history}?cursor=-1-0`, "Link"],
  [`${history}?cursor=9999999999-0`, "Link"],
  [`${history}?cursor=0-9999999`, "Link"],
  ["/api/v1/blockchains/plasma/usdt/token-transfers/0x12", "txHash"],
  [`/api/v1/blockchains/plasma/usdt/token-transfers/${"a".repeat(256)}`, "txHash"],
  [`/api/v1/blockchains/atlantis/usdt/token-transfers/0x${"0".repeat(64)}`, "plasma"],
] as const;

/** Bodies of batches that are a 400. */
const badBodies = [
  ["nothing", ""],
  ["no JSON", "{"],
  ["a number", "1"],
  ["null", "null"],
  ["an object", item],
  ["no items", []],
  ["eleven items", Array(11).fill(item)],
  ["an item that is no object", ["plasma"]],
  ["an item that is null", [null]],
  ["an item without an address", [{ blockchain: "plasma", token: "usdt" }]],
  ["an empty address", [{ ...item, address: "" }]],
  ["an address that is a number", [{ ...item, address: 1 }]],
  ["an unknown member of an item", [{ ...item, colour: "blue" }]],
  ["a bad item among good ones", [item, { ...item, token: 5 }, item]],
] as const;

/** Fields of a history's item that are a 400. */
const badFields = [
  { limit: 0 },
  { limit: 1001 },
  { limit: -1 },
  { limit: 1.5 },
  { limit: "10" },
  { limit: null },
  { fromTs: -1 },
  { fromTs: "0" },
  { toTs: 1e300 },
  { sort: "asc" },
];

describe.each(stands)("bad input on $engine, Express $expressVersion", (stand) => {
  it("is a 400 that names the fault, in paths and queries", async () => {
    const { call } = await startApi(stand);
    for (const [path, words] of badPaths) {
      for (const accept of ["application/json", "text/csv"]) {
        const { status, body } = await call(path, { headers: { accept } });
        expect({ path, status }).toEqual({ path, status: 400 });
        const { error, message } = errorBody.parse(body);
        expect(error).toBe("Bad Request");
        expect(message).toContain(words);
        expect(message.length).toBeLessThan(400);
      }
    }
  });

  it("is a 400 for the whole of a malformed batch", async () => {
    const { post } = await startApi(stand);
    for (const path of ["/api/v1/batch/token-transfers", "/api/v1/batch/token-balances"]) {
      for (const [title, body] of badBodies) {
        const { status } = await post(path, body);
        expect({ title, status }).toEqual({ title, status: 400 });
      }
    }
    for (const fields of badFields) {
      const { status } = await post("/api/v1/batch/token-transfers", [{ ...item, ...fields }]);
      expect({ fields, status }).toEqual({ fields, status: 400 });
    }
    // A balance has no page.
    expect(await post("/api/v1/batch/token-balances", [{ ...item, limit: 1 }])).toMatchObject({
      status: 400,
    });
  });

  it("is a 400 for a key with a wrong label or lifetime", async () => {
    const { post } = await startApi(stand);
    for (const wish of [
      { label: 1 },
      { ttl: -1 },
      { ttl: "1" },
      { owner: "me" },
      { ttl: 1e300 },
      [],
    ]) {
      expect(await post("/api/v1/keys", wish)).toMatchObject({ status: 400 });
    }
  });

  it("is a 413 for a megabyte, and a 415 for any type but JSON", async () => {
    const { post, call } = await startApi(stand);
    const path = "/api/v1/batch/token-balances";
    const megabyte = JSON.stringify([{ ...item, address: "a".repeat(1_000_000) }]);
    expect(await post(path, megabyte)).toMatchObject({
      status: 413,
      body: { error: "Payload Too Large", status: 413 },
    });
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/jsonp",
      "",
    ]) {
      const answer = await post(path, [item], { headers: { "content-type": type } });
      expect({ type, answer }).toMatchObject({
        type,
        answer: { status: 415, body: { error: "Unsupported Media Type", status: 415 } },
      });
    }
    const bare = await call(path, { method: "POST" });
    expect(bare).toMatchObject({ status: 415 });
    const encoded = { "content-encoding": "snappy" };
    expect(await post(path, [item], { headers: encoded })).toMatchObject({ status: 415 });
    const charset = { "content-type": "application/json; charset=latin1" };
    expect(await post(path, [item], { headers: charset })).toMatchObject({ status: 415 });
    const utf8 = { "content-type": "Application/JSON ; charset=UTF-8" };
    expect(await post(path, [item], { headers: utf8 })).toMatchObject({ status: 200 });
  });

  it("is a 404 for an unknown path, and a 405 with Allow for an unknown method", async () => {
    const { call, url } = await startApi(stand);
    for (const path of [
      "/api/v1",
      "/api/v1/",
      "/api/v1/wallets",
      `${history}/more`,
      "/api/v1/batch/token-prices",
      `/api/v1/plasma/usdt/${alice}`,
    ]) {
      expect(await call(path)).toMatchObject({
        status: 404,
        body: { error: "Not Found", status: 404 },
      });
    }
    for (const [path, method, allow] of [
      ["/api/v1/health", "POST", "GET, HEAD"],
      [balance, "PUT", "GET, HEAD"],
      ["/api/v1/batch/token-balances", "GET", "POST"],
      ["/api/v1/keys", "DELETE", "GET, HEAD, POST"],
      ["/api/v1/keys/abc", "GET", "DELETE"],
      ["/api/v1/chains", "OPTIONS", "GET, HEAD"],
      ["/api/v1/chains", "PATCH", "GET, HEAD"],
    ] as const) {
      const { status, body, headers } = await call(path, { method });
      expect({ path, status, allow: headers.get("allow") }).toEqual({ path, status: 405, allow });
      expect(body).toMatchObject({ error: "Method Not Allowed", status: 405 });
    }
    const outside = await supertest(url).get("/api/v2/chains").expect(404);
    expect(outside.body).toMatchObject({ error: "Not Found", status: 404 });
  });

  it("is answered in JSON even for requests that no client library sends", async () => {
    const { url, key } = await startApi(stand);
    const { hostname, port } = new URL(url);
    for (const path of ["/api/v1/chains?%E0%A4%A=1", "/api/v1/%E0%A4%A/usdt/0x/token-balances"]) {
      const text = await new Promise<string>((resolve, reject) => {
        sendRaw({ hostname, port, path, headers: { "x-api-key": key } }, (response) => {
          let body = "";
          response.on("data", (chunk) => {
            body += chunk;
          });
          response.on("end", () => resolve(body));
        })
          .on("error", reject)
          .end();
      });
      expect(() => JSON.parse(text)).not.toThrow();
    }
  });

  it("never reveals an internal error", async () => {
    const { call, source } = await startApi(stand);
    source.fail(new Error("password of postgres://secret"));
    for (const accept of ["application/json", "text/csv"]) {
      const { status, body } = await call(history, { headers: { accept } });
      expect(status).toBe(500);
      expect(body).toMatchObject({ error: "Internal Server Error", status: 500 });
      expect(JSON.stringify(body)).not.toContain("secret");
    }
  });
});
