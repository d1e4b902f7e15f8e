import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { stands, startApi } from "./testing/api-server.ts";
import { alice, bob, transferIn } from "./testing/transfers.ts";
import { transfersBody } from "./wire/transfer.ts";

const history = `/api/v1/plasma/usdt/${alice}/token-transfers`;
const stranger = `0x${"9".repeat(40)}`;

describe.each(stands)("the API on $engine, Express $expressVersion", (stand) => {
  it("returns its health: 200 only if every chain is healthy, else 503 with the same shape", async () => {
    const { call, source } = await startApi(stand);
    const well = await call("/api/v1/health");
    expect(well.status).toBe(200);
    expect(well.body).toMatchObject({
      status: "healthy",
      summary: { healthy: 2, unhealthy: 0, total: 2 },
      checks: {
        database: { status: "healthy" },
        indexers: {
          "plasma:usdt": {
            status: "healthy",
            rpcLatencyMs: 1.5,
            lag: 0,
            db: { status: "healthy" },
          },
          "stable:usdt": { status: "healthy", lag: 1, db: { status: "healthy" } },
        },
      },
    });

    const token = { blockchain: "plasma", token: "usdt", lag: undefined, rpcLatencyMs: undefined };
    source.setHealth({
      status: "degraded",
      isDatabaseHealthy: true,
      tokens: [{ ...token, isHealthy: false }],
    });
    const late = await call("/api/v1/health");
    expect(late).toMatchObject({ status: 503, body: { status: "degraded" } });
    expect(late.body).toMatchObject({ summary: { healthy: 0, unhealthy: 1, total: 1 } });
  });

  it("lists chains and tokens", async () => {
    const { call } = await startApi(stand);
    expect(await call("/api/v1/chains")).toMatchObject({
      status: 200,
      body: {
        chains: [
          { name: "plasma", tokens: ["usdt", "xaut"] },
          { name: "stable", tokens: ["usdt"] },
        ],
      },
    });
  });

  it("returns a history newest first, ten by default, with each record's finality", async () => {
    const { call, source } = await startApi(stand);
    source.add(...Array.from({ length: 12 }, (_, block) => transferIn(block)));
    const { body, headers } = await call(history);
    const { transfers } = transfersBody.parse(body);
    expect(transfers.map(({ blockNumber }) => blockNumber)).toEqual([
      11, 10, 9, 8, 7, 6, 5, 4, 3, 2,
    ]);
    expect(transfers[0]).toMatchObject({
      blockchain: "plasma",
      token: "usdt",
      blockNumber: 11,
      amount: "1000000",
      from: alice,
      to: bob,
      timestamp: 1_700_000_011_000,
      confirmations: 3,
      finalized: true,
    });
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it("returns an empty list and a zero balance for an unused address", async () => {
    const { call } = await startApi(stand);
    const nothing = await call(`/api/v1/plasma/usdt/${stranger}/token-transfers`);
    expect(nothing).toMatchObject({ status: 200, body: { transfers: [] } });
    const balance = await call(`/api/v1/plasma/usdt/${stranger}/token-balances`);
    expect(balance.body).toEqual({
      tokenBalance: { blockchain: "plasma", token: "usdt", amount: "0" },
    });
  });

  it("accepts addresses percent-encoded and in any case", async () => {
    const { call, source } = await startApi(stand);
    source.add(transferIn(1));
    const spellings = [
      bob.toUpperCase(),
      `0x${bob.slice(2).toUpperCase()}`,
      [...bob].map((c) => `%${c.charCodeAt(0).toString(16)}`).join(""),
    ];
    for (const address of spellings) {
      const { body } = await call(`/api/v1/plasma/usdt/${address}/token-balances`);
      expect(body).toMatchObject({ tokenBalance: { amount: "1000000" } });
    }
  });

  it("links all pages, in both directions, without a gap or a repetition", async () => {
    const { call, source } = await startApi(stand);
    source.add(
      ...Array.from({ length: 23 }, (_, index) =>
        transferIn(Math.floor(index / 3), { logIndex: index % 3 }),
      ),
    );
    for (const sort of ["asc", "desc"]) {
      const seen: number[] = [];
      let path: string | undefined = `${history}?limit=5&sort=${sort}`;
      while (path !== undefined) {
        const { body, headers } = await call(path);
        for (const { blockNumber, logIndex } of transfersBody.parse(body).transfers) {
          seen.push(blockNumber * 3 + Number(logIndex));
        }
        path = /^<(.+)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1];
      }
      const expected = Array.from({ length: 23 }, (_, index) => index);
      expect(seen).toEqual(sort === "asc" ? expected : expected.reverse());
    }
  });

  it("filters by time, inclusively, in milliseconds or in seconds", async () => {
    const { call, source } = await startApi(stand);
    source.add(...Array.from({ length: 10 }, (_, block) => transferIn(block)));
    async function blocks(query: string): Promise<number[]> {
      const { body } = await call(`${history}?sort=asc&${query}`);
      return transfersBody.parse(body).transfers.map(({ blockNumber }) => blockNumber);
    }
    expect(await blocks("fromTs=1700000003000&toTs=1700000005000")).toEqual([3, 4, 5]);
    expect(await blocks("fromTs=1700000003&toTs=1700000005")).toEqual([3, 4, 5]);
    expect(await blocks("fromTs=1700000003001&toTs=1700000005")).toEqual([4, 5]);
    expect(await blocks("fromTs=1700000008")).toEqual([8, 9]);
    expect(await blocks("toTs=1700000001")).toEqual([0, 1]);
    expect(await blocks("fromTs=0&toTs=0")).toEqual([]);
  });

  it("finds the transfers of a transaction, and returns 404 where there are none", async () => {
    const { call, source } = await startApi(stand);
    const transfer = transferIn(4);
    source.add(transfer, transferIn(5));
    const path = "/api/v1/blockchains/plasma/usdt/token-transfers";
    const found = await call(`${path}/${transfer.transactionHash.toUpperCase()}`);
    expect(found).toMatchObject({ status: 200, body: { transfers: [{ blockNumber: 4 }] } });
    const none = await call(`${path}/0x${"0".repeat(64)}`);
    expect(none).toMatchObject({ status: 404, body: { error: "Not Found", status: 404 } });
  });

  it("answers batches in order, with each bad item's own error", async () => {
    const { post, source } = await startApi(stand);
    source.add(transferIn(1), transferIn(2));
    const good = { blockchain: "plasma", token: "usdt", address: bob };
    const items = [
      good,
      { ...good, blockchain: "atlantis" },
      { ...good, blockchain: "stable", token: "xaut" },
      { ...good, address: "bob" },
      { ...good, address: stranger },
    ];
    const bad = { error: "Bad Request", status: 400, message: expect.any(String) };
    const balances = await post("/api/v1/batch/token-balances", items);
    expect(balances).toMatchObject({ status: 200 });
    expect(balances.body).toEqual([
      { tokenBalance: { blockchain: "plasma", token: "usdt", amount: "2000000" } },
      bad,
      bad,
      bad,
      { tokenBalance: { blockchain: "plasma", token: "usdt", amount: "0" } },
    ]);
    const transfers = await post("/api/v1/batch/token-transfers", [
      { ...good, limit: 1 },
      ...items.slice(1),
      { ...good, fromTs: 2, toTs: 1 },
    ]);
    expect(transfers.status).toBe(200);
    expect(transfers.body).toMatchObject([
      { transfers: [{ blockNumber: 2 }] },
      bad,
      bad,
      bad,
      { transfers: [] },
      bad,
    ]);
  });

  it("answers HEAD as GET, without a body", async () => {
    const { call } = await startApi(stand);
    expect(await call(history, { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
    const stream = { accept: "text/event-stream" };
    const { headers } = await call(history, { method: "HEAD", headers: stream });
    expect(headers.get("content-type")).toContain("application/json");
  });

  it("serves its document and a page, without a key and without external resources", async () => {
    const { url } = await startApi(stand);
    const document = await supertest(url).get("/openapi.json").expect(200);
    expect(document.body).toMatchObject({ openapi: "3.1.0" });
    const page = await supertest(url).get("/docs");
    expect(page.headers["content-type"]).toContain("text/html");
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(page.text.match(/(?:src|href)="?https?:/g)).toBeNull();
  });

  it("requires no key and has no limits where access is open, and then has no key routes", async () => {
    const { call } = await startApi(stand, { unsafeOpenAccess: true });
    const anonymous = { headers: { "x-api-key": "" } };
    for (let count = 0; count < 12; count += 1) {
      const { status, headers } = await call("/api/v1/health", anonymous);
      expect(status).toBe(200);
      expect(headers.has("ratelimit")).toBe(false);
    }
    expect(await call("/api/v1/keys", anonymous)).toMatchObject({ status: 404 });
  });
});
