import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { silentLogger } from "../logger.ts";
import { changeStops } from "../stops/change-stops.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { copyMigratedLedger } from "../testing/migrated-ledger.ts";
import { engines } from "../testing/settling-devnet.ts";
import { askSellerOverHttp } from "./ask-seller.ts";
import { defineOperation, type Operation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";
import { runOperation } from "./run-operation.ts";
import { serveOverHttp } from "./serve-over-http.ts";
import { openTestLedger } from "./testing/open-test-ledger.ts";

const key = "k".repeat(32);
const change = {
  operation: "set",
  target: { kind: "route", name: "GET /weather" },
  reason: "no forecast",
} as const;

/** Reads the number of stop switches, and refuses where the caller asks for it. */
const countOperation = defineOperation({
  name: "stops.count",
  access: "read",
  argument: z.object({ isRefused: z.boolean() }),
  result: z.object({ count: z.string().transform(BigInt) }),
  async run({ db }, { isRefused }) {
    if (isRefused) throw new OperationRefusedError("not_settled", "The payment is not settled");
    return { count: String((await db.selectFrom("stops").selectAll().execute()).length) };
  },
});

async function serve(
  options: {
    engine?: (typeof engines)[number];
    keys?: string[];
    operations?: Operation[];
    now?: () => number;
    port?: number;
    idleMs?: number;
  } = {},
) {
  const { engine = "sqlite", keys = [key], now, port = 0, idleMs = 15_000 } = options;
  const { operations = [stopsOperation, countOperation] } = options;
  const { url, drop } = await copyMigratedLedger(engine);
  onTestFinished(drop);
  const ledger = await openTestLedger(url);
  const logged: { fields: object; message: string }[] = [];
  const log = (fields: object, message: string) => void logged.push({ fields, message });
  const served = {
    operations,
    context: { ledger, seller: undefined },
    read: <Result>(work: (reads: typeof ledger) => Promise<Result>) => work(ledger),
    logger: { ...silentLogger, info: log, warn: log, error: log },
  };
  const listener = { host: "127.0.0.1", port, keys };
  const server = await serveOverHttp(served, { listener, idleMs, ...(now && { now }) });
  onTestFinished(server.close);
  const place = z.object({ address: z.object({ port: z.number() }) });
  const bound = logged.flatMap(({ fields }) => place.safeParse(fields).data?.address.port ?? [])[0];
  return {
    origin: `http://127.0.0.1:${bound}`,
    port: bound ?? 0,
    logged,
    ledgerUrl: url,
    ...server,
  };
}

function post(url: string, headers: Record<string, string>, body: unknown = change) {
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

describe.each(engines)("operations over HTTP, on %s", (engine) => {
  it("are run for a caller with the key, with each key of a rotation", async () => {
    const next = "n".repeat(32);
    const { origin } = await serve({ engine, keys: [key, next] });
    const report = await changeStops({ url: { url: origin, key }, change });
    expect(report).toMatchObject({ stops: [change.target], isKnown: false });
    const cleared = { operation: "clear", target: change.target } as const;
    expect(
      await changeStops({ url: { url: `${origin}/`, key: next }, change: cleared }),
    ).toMatchObject({
      stops: [],
    });
  });

  it("have typed arguments, results and refusals, the same beside the ledger", async () => {
    const { origin, ledgerUrl } = await serve({ engine });
    for (const place of [{ url: origin, key }, ledgerUrl]) {
      const counted = await runOperation(place, countOperation, { isRefused: false });
      expect(counted).toEqual({ count: 0n });
      const refused = runOperation(place, countOperation, { isRefused: true });
      await expect(refused).rejects.toThrow(
        expect.objectContaining({
          name: "OperationRefusedError",
          code: "not_settled",
          message: "The payment is not settled",
        }),
      );
    }
  });
});

describe("the operator's listener", () => {
  it("refuses a caller without its key, and changes nothing", async () => {
    const { origin } = await serve();
    const wrong: Record<string, string>[] = [
      {},
      { authorization: `Bearer ${"x".repeat(32)}` },
      { authorization: `Bearer ${key}x` },
      { authorization: `Bearer ${key.slice(1)}` },
      { authorization: "Bearer " },
      { authorization: `Basic ${key}` },
      { "x-api-key": key },
    ];
    for (const headers of wrong) {
      const response = await post(`${origin}/stops`, headers);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe('Bearer realm="operators"');
      expect(await response.json()).toMatchObject({ code: "unauthorized" });
    }
    expect((await post(`${origin}/stops?key=${key}`, {})).status).toBe(401);
    const counted = await runOperation({ url: origin, key }, countOperation, { isRefused: false });
    expect(counted).toEqual({ count: 0n });
    await expect(
      changeStops({ url: { url: origin, key: "w".repeat(32) }, change }),
    ).rejects.toThrow("The seller does not accept this key.");
  });

  it("has few words for an address with ten wrong keys in the same minute, and opens to the right one", async () => {
    let now = 0;
    const { origin, logged } = await serve({ now: () => now });
    const wrong = { authorization: `Bearer ${"w".repeat(32)}` };
    for (let count = 0; count < 10; count += 1) await post(`${origin}/stops`, wrong);
    const limited = await post(`${origin}/stops`, wrong);
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "60"]);
    expect(logged.filter(({ message }) => message.includes("no valid key"))).toHaveLength(10);
    // Behind a proxy strangers have the operator's address: they must not close the stop switch.
    const right = { authorization: `Bearer ${key}` };
    expect((await post(`${origin}/stops`, right)).status).toBe(200);
    now = 60_000;
    expect((await post(`${origin}/stops`, wrong)).status).toBe(401);
  });

  it("is no origin for scripts of other sites", async () => {
    const { origin } = await serve();
    const preflight = await fetch(`${origin}/stops`, {
      method: "OPTIONS",
      headers: { origin: "https://example.com", "access-control-request-headers": "authorization" },
    });
    expect(preflight.status).toBe(401);
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("refuses an unknown operation, a malformed argument and one that is too large", async () => {
    const { origin } = await serve();
    const headers = { authorization: `Bearer ${key}` };
    expect((await post(`${origin}/refunds.create`, headers)).status).toBe(404);
    expect((await fetch(`${origin}/stops`, { headers })).status).toBe(404);
    expect((await post(`${origin}/stops`, headers, {})).status).toBe(400);
    const reason = "a".repeat(20_000);
    expect((await post(`${origin}/stops`, headers, { ...change, reason })).status).toBe(400);
  });

  it("logs a refused caller without the key that it presented", async () => {
    const { origin, logged } = await serve();
    await post(`${origin}/stops`, { authorization: "Bearer presented-by-mistake" });
    expect(JSON.stringify(logged)).toContain("had no valid key");
    expect(JSON.stringify(logged)).not.toContain("presented-by-mistake");
    expect(JSON.stringify(logged)).not.toContain(key);
  });

  it("logs a port that is taken, and throws nothing", async () => {
    const { port } = await serve();
    const second = await serve({ port });
    expect(second.logged).toMatchObject([
      { message: "commands of the operator cannot be served over HTTP" },
    ]);
  });

  it("has room for the operator while strangers hold as many connections as they get", async () => {
    const { origin, port } = await serve();
    const strangers = Array.from({ length: 200 }, () => {
      const peer = connect(port, "127.0.0.1");
      onTestFinished(() => void peer.destroy());
      peer.on("error", () => undefined);
      return once(peer, "connect");
    });
    await Promise.all(strangers);
    const counted = await runOperation({ url: origin, key }, countOperation, { isRefused: false });
    expect(counted).toEqual({ count: 0n });
  });

  it("keeps the operator's own connections while strangers come", async () => {
    let answer: (() => void) | undefined;
    const isAsked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let end: (() => void) | undefined;
    const isEnded = new Promise<void>((resolve) => {
      end = resolve;
    });
    const slow = defineOperation({
      ...countOperation,
      access: "read",
      async run() {
        answer?.();
        await isEnded;
        return { count: "7" };
      },
    });
    const { origin, port } = await serve({ operations: [slow] });
    const counting = runOperation({ url: origin, key }, slow, { isRefused: false });
    await isAsked;
    for (let count = 0; count < 200; count += 1) {
      const peer = connect(port, "127.0.0.1");
      onTestFinished(() => void peer.destroy());
      peer.on("error", () => undefined);
      await once(peer, "connect");
    }
    end?.();
    expect(await counting).toEqual({ count: 7n });
  });

  it("ends connections of peers that send half a request", async () => {
    const { port } = await serve({ idleMs: 20 });
    const halves = ["", "POST /st", `POST /stops HTTP/1.1\r\nAuthorization: Bearer ${key}\r\n`];
    const ends = halves.map((half) => {
      const peer = connect(port, "127.0.0.1");
      peer.on("error", () => undefined).write(half);
      return text(peer).catch(() => undefined);
    });
    await Promise.all(ends);
  });
});

describe("a command that asks over HTTP", () => {
  it("sends its key over https alone, except to this machine", async () => {
    for (const url of [
      "http://192.0.2.1:4021",
      "http://localhost.example.com",
      "ftp://localhost",
    ]) {
      await expect(askSellerOverHttp({ url, key }, stopsOperation, change)).rejects.toThrow(
        /goes over https:\/\/ alone/,
      );
    }
  });

  it("reports that no seller answers", async () => {
    const { origin, close } = await serve();
    await close();
    await expect(changeStops({ url: { url: origin, key }, change })).rejects.toThrow(
      "No seller answers there: does it run, and serve its operator?",
    );
  });
});
