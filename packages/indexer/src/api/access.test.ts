import { openDatabase } from "@coinslot/storage";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import type { IndexerSchema } from "../store/schema.ts";
import { createDatabaseUrl, stands, startApi } from "./testing/api-server.ts";
import { alice } from "./testing/transfers.ts";
import { keyCreatedBody, keyListBody } from "./wire/key.ts";

const withKey = (key: string) => ({ headers: { "x-api-key": key } });
const wrongKey = `csk_0123456789ab_${"x".repeat(43)}`;
const everyGet = [
  "/api/v1/health",
  "/api/v1/chains",
  `/api/v1/plasma/usdt/${alice}/token-transfers`,
  `/api/v1/plasma/usdt/${alice}/token-balances`,
  `/api/v1/blockchains/plasma/usdt/token-transfers/0x${"0".repeat(64)}`,
  "/api/v1/keys",
];

describe.each(stands)("API access on $engine, Express $expressVersion", (stand) => {
  it("is 401 without a key, with a wrong one and with an expired one, on every route", async () => {
    const { call, createKey } = await startApi(stand, {
      failureLimit: { max: 1_000, windowMs: 1_000 },
    });
    const expired = await createKey({ ttlMs: 1 });
    const body = { error: "Unauthorized", status: 401 };
    for (const path of [...everyGet, "/api/v1/unknown"]) {
      for (const key of ["", "abc", wrongKey, expired]) {
        expect(await call(path, withKey(key))).toMatchObject({ status: 401, body });
      }
    }
    expect(await call("/api/v1/health", { method: "PUT", ...withKey("") })).toMatchObject({
      status: 401,
    });
  });

  it("leaves health and chains open, and returns 403 to unknown callers, in the public deployment's mode", async () => {
    const { call, createKey } = await startApi(stand, { authStatus: "live" });
    const expired = await createKey({ ttlMs: 1 });
    for (const key of ["", "abc", wrongKey, expired]) {
      expect(await call("/api/v1/health", withKey(key))).toMatchObject({ status: 200 });
      expect(await call("/api/v1/chains", withKey(key))).toMatchObject({ status: 200 });
    }
    const path = `/api/v1/plasma/usdt/${alice}/token-balances`;
    for (const key of ["", "abc", wrongKey]) {
      expect(await call(path, withKey(key))).toMatchObject({
        status: 403,
        body: { error: "Forbidden", status: 403 },
      });
    }
    expect(await call(path, withKey(expired))).toMatchObject({ status: 401 });
  });

  it("limits wrong keys by address, and still accepts right ones", async () => {
    const { call } = await startApi(stand, { failureLimit: { max: 3, windowMs: 60_000 } });
    for (let count = 0; count < 3; count += 1) {
      expect(await call("/api/v1/chains", withKey(wrongKey))).toMatchObject({ status: 401 });
    }
    const limited = await call("/api/v1/chains", withKey(""));
    expect(limited).toMatchObject({ status: 429, body: { error: "Too Many Requests" } });
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await call("/api/v1/chains")).toMatchObject({ status: 200 });
  });

  it("gives an owner keys, and lists and revokes that owner's keys only", async () => {
    const { call, post, createKey } = await startApi(stand);
    const [ours, theirs] = [await createKey({ owner: "us" }), await createKey({ owner: "them" })];
    const made = await post("/api/v1/keys", { label: "for the shop", ttl: 60_000 }, withKey(ours));
    expect(made.status).toBe(200);
    const { key, hashedKey, owner, ttl, label } = keyCreatedBody.parse(made.body);
    expect({ owner, ttl, label }).toEqual({ owner: "us", ttl: 60_000, label: "for the shop" });
    expect(await call("/api/v1/chains", withKey(key))).toMatchObject({ status: 200 });

    const list = await call("/api/v1/keys", withKey(ours));
    const { keys } = keyListBody.parse(list.body);
    expect(keys).toHaveLength(2);
    expect(keys.map((each) => each.owner)).toEqual(["us", "us"]);
    expect(JSON.stringify(list.body)).not.toContain(key.slice(17));
    expect(keyListBody.parse((await call("/api/v1/keys", withKey(theirs))).body).keys).toHaveLength(
      1,
    );

    const revoke = (caller: string, hash: string) =>
      call(`/api/v1/keys/${hash}`, { method: "DELETE", ...withKey(caller) });
    const notFound = { status: 404, body: { error: "Not Found" } };
    expect(await revoke(theirs, hashedKey)).toMatchObject(notFound);
    expect(await revoke(ours, "0".repeat(64))).toMatchObject(notFound);
    expect(await revoke(ours, hashedKey)).toMatchObject({ status: 200, body: { success: true } });
    expect(await call("/api/v1/chains", withKey(key))).toMatchObject({ status: 401 });
    expect(await revoke(ours, hashedKey)).toMatchObject(notFound);
  });

  it("gives no key a longer life than its parent's", async () => {
    const { post, createKey } = await startApi(stand);
    const trial = await createKey({ ttlMs: 60_000 });
    for (const ttl of [undefined, 0, 3_600_000]) {
      const { body } = await post("/api/v1/keys", { ttl }, withKey(trial));
      const made = keyCreatedBody.parse(body);
      expect(made.ttl).toBeGreaterThan(0);
      expect(made.ttl).toBeLessThanOrEqual(60_000);
    }
  });

  it("stores salted hashes of keys, no two alike, and no key", async () => {
    const databaseUrl = await createDatabaseUrl(stand.engine);
    const { createKey } = await startApi(stand, { databaseUrl });
    const keys = [await createKey(), await createKey()];
    const database = await openDatabase<IndexerSchema>({ url: databaseUrl, readOnly: true });
    const { rows } = await sql<{ salt: string; hash: string }>`
      select * from indexer_api_keys
    `.execute(database.kysely);
    await database.close();
    expect(new Set(rows.map(({ salt }) => salt)).size).toBe(rows.length);
    for (const key of keys) expect(JSON.stringify(rows)).not.toContain(key.slice(17));
  });

  it("reports its health while the database of keys is away", async () => {
    const { call, source } = await startApi(stand);
    source.setHealth({ status: "unhealthy", isDatabaseHealthy: false, tokens: [] });
    await (await source.database()).close();
    expect(await call("/api/v1/health")).toMatchObject({
      status: 503,
      body: { status: "unhealthy", checks: { database: { status: "unhealthy" } } },
    });
    expect(await call("/api/v1/chains")).toMatchObject({ status: 500 });
  });
});
