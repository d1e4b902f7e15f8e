import { get } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ReceivedEvent, readEvents } from "../client/read-events.ts";
import { stands, startApi, type TestApi } from "../testing/api-server.ts";
import { alice, bob, transferIn } from "../testing/transfers.ts";

const history = `/api/v1/plasma/usdt/${alice}/token-transfers`;

/** Opens a stream that is closed when the test ends. */
async function open({ url, key }: TestApi, headers: Record<string, string> = {}) {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const response = await fetch(`${url}${history}`, {
    headers: { "x-api-key": key, accept: "text/event-stream", ...headers },
    signal: abort.signal,
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  if (response.body === null) throw new Error("The stream has no body.");
  const events = readEvents(response.body);

  async function next(): Promise<ReceivedEvent> {
    const { value, done } = await events.next();
    if (done === true) throw new Error("The stream has ended.");
    return value;
  }
  return {
    next,
    /** The next message with data. */
    async nextEvent(): Promise<{ id: string | undefined; event: string; data: unknown }> {
      for (;;) {
        const { id, event, data } = await next();
        if (data !== "") return { id, event, data: JSON.parse(data) };
      }
    },
    isOver: async () => {
      for await (const { data } of events) if (data !== "") return false;
      return true;
    },
    close: () => abort.abort(),
  };
}

async function tryToOpen({ url, key }: TestApi): Promise<{ status: number }> {
  const headers = { accept: "text/event-stream", "x-api-key": key };
  const { status, body } = await fetch(`${url}${history}`, { headers });
  await body?.cancel();
  return { status };
}

describe.each(stands)(
  "the event stream of an address on $engine, Express $expressVersion",
  (stand) => {
    it("sends new transfers as they happen, of this address and token only", async () => {
      const api = await startApi(stand);
      api.source.add(transferIn(1));
      const stream = await open(api);
      expect(await stream.next()).toEqual({ id: "1", event: "message", data: "" });
      api.source.add(transferIn(2, { from: bob }), transferIn(3, { token: "xaut" }), transferIn(4));
      expect(await stream.nextEvent()).toMatchObject({
        id: "4",
        event: "transfer",
        data: { blockNumber: 4, amount: "1000000", blockchain: "plasma", token: "usdt" },
      });
    });

    it("sends retractions after a reorganisation", async () => {
      const api = await startApi(stand);
      const stream = await open(api);
      const transfer = transferIn(1);
      api.source.add(transfer);
      api.source.retract(transfer);
      api.source.add(transferIn(2));
      const told = [await stream.nextEvent(), await stream.nextEvent(), await stream.nextEvent()];
      expect(told).toMatchObject([
        { id: "1", event: "transfer", data: { blockNumber: 1 } },
        { id: "2", event: "retraction", data: { blockNumber: 1 } },
        { id: "3", event: "transfer", data: { blockNumber: 2 } },
      ]);
    });

    it("resumes after the last event seen, for any number of events", async () => {
      const api = await startApi(stand);
      api.source.add(...Array.from({ length: 1_203 }, (_, block) => transferIn(block)));
      const stream = await open(api, { "last-event-id": "2" });
      for (let id = 3; id <= 1_203; id += 1) {
        expect(await stream.nextEvent()).toMatchObject({ id: String(id), event: "transfer" });
      }
    });

    it("reports a gap where it cannot send all events since", async () => {
      const api = await startApi(stand);
      api.source.add(transferIn(1), transferIn(2), transferIn(3));
      api.source.forgetEvents(2);
      const forgotten = await open(api, { "last-event-id": "1" });
      expect(await forgotten.nextEvent()).toMatchObject({ event: "gap" });
      expect(await forgotten.nextEvent()).toMatchObject({ id: "3", event: "transfer" });
      const fromElsewhere = await open(api, { "last-event-id": "77" });
      expect(await fromElsewhere.nextEvent()).toMatchObject({ id: "3", event: "gap" });
    });

    it("refuses an invalid event id, a wrong address, and a stream above the limit", async () => {
      const api = await startApi(stand, { streams: { total: 3, perCaller: 2 } });
      const accept = "text/event-stream";
      expect(await api.call(history, { headers: { accept, "last-event-id": "x" } })).toMatchObject({
        status: 400,
      });
      expect(
        await api.call("/api/v1/plasma/usdt/0x1/token-transfers", { headers: { accept } }),
      ).toMatchObject({ status: 400 });

      const [first] = [await open(api), await open(api)];
      const refused = await api.call(history, { headers: { accept } });
      expect(refused).toMatchObject({ status: 429, body: { error: "Too Many Requests" } });
      expect(refused.headers.get("retry-after")).toBe("10");

      await open(api, { "x-api-key": await api.createKey() });
      const other = { headers: { accept, "x-api-key": await api.createKey() } };
      expect(await api.call(history, other)).toMatchObject({ status: 429 });
      first?.close();
      await expect
        .poll(async () => {
          const { status, body } = await fetch(`${api.url}${history}`, {
            headers: { accept, "x-api-key": await api.createKey() },
          });
          await body?.cancel();
          return status;
        })
        .toBe(200);
    });

    it("refuses further streams of one owner, with any of its keys, and none of another owner", async () => {
      const api = await startApi(stand, { streams: { total: 4, perCaller: 2, perOwner: 3 } });
      const keyOf = (owner: string) => api.createKey({ owner });
      for (let index = 0; index < 3; index++)
        await open(api, { "x-api-key": await keyOf("crowd") });
      const headers = { accept: "text/event-stream", "x-api-key": await keyOf("crowd") };
      const refused = await api.call(history, { headers });
      expect(refused).toMatchObject({
        status: 429,
        body: { message: "3 streams are open with your keys. Close one first." },
      });
      await open(api, { "x-api-key": await keyOf("other") });
    });

    it("ends when its reader takes nothing for a while, and frees its place", async () => {
      const api = await startApi(stand, {
        streams: { total: 1, perCaller: 1 },
        heartbeatMs: 20,
        stallMs: 200,
      });
      api.source.add(...Array.from({ length: 60_000 }, (_, block) => transferIn(block)));
      const headers = {
        accept: "text/event-stream",
        "x-api-key": api.key,
        "last-event-id": "1",
      };
      await new Promise<void>((resolve, reject) => {
        const request = get(`${api.url}${history}`, { headers }, (response) => {
          response.pause();
          resolve();
        });
        request.on("error", reject);
        onTestFinished(() => void request.destroy());
      });
      await expect.poll(async () => (await tryToOpen(api)).status, { timeout: 20_000 }).toBe(200);
    });

    it("sends heartbeats that move its event id, and ends when its key is revoked", async () => {
      const api = await startApi(stand, { heartbeatMs: 20 });
      const key = await api.createKey({ owner: "leaver" });
      const stream = await open(api, { "x-api-key": key });
      expect(await stream.next()).toMatchObject({ id: "0" });
      api.source.add(transferIn(1, { from: bob }));
      await expect.poll(async () => (await stream.next()).id).toBe("1");
      const [stored] = await api.keys.list("leaver");
      await api.keys.revoke(stored?.hashedKey ?? "");
      expect(await stream.isOver()).toBe(true);
    });

    it("ends when the service stops, and without a final event when reading fails", async () => {
      const stop = new AbortController();
      const api = await startApi(stand, { signal: stop.signal });
      const stopped = await open(api);
      stop.abort();
      expect(await stopped.isOver()).toBe(true);

      const other = await startApi(stand);
      const failed = await open(other);
      await failed.next();
      other.source.fail(new Error("The database is away."));
      other.source.add(transferIn(1));
      expect(await failed.isOver().catch(() => true)).toBe(true);
    });
  },
);
