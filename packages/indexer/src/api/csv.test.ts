import { get, type IncomingMessage } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { csvHeader } from "./csv.ts";
import { stands, startApi, type TestApi } from "./testing/api-server.ts";
import { alice, bob, transferIn } from "./testing/transfers.ts";

const history = `/api/v1/plasma/usdt/${alice}/token-transfers`;
const asCsv = { headers: { accept: "text/csv" } };

async function readLines({ call }: TestApi, query = ""): Promise<string[]> {
  const { status, body, headers } = await call(`${history}${query}`, asCsv);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const lines = String(body).split("\r\n");
  expect(lines.pop()).toBe("");
  expect(lines.shift()).toBe(csvHeader.trim());
  return lines;
}

/** Begins to read a file, and takes no more than its beginning. */
async function startReading({ url }: TestApi, key: string): Promise<IncomingMessage> {
  const headers = { accept: "text/csv", "x-api-key": key };
  return new Promise((resolve, reject) => {
    const request = get(`${url}${history}`, { headers }, (response) => {
      response.pause();
      response.on("error", () => undefined);
      resolve(response);
    });
    request.on("error", reject);
    onTestFinished(() => void request.destroy());
  });
}

describe.each(stands)("CSV on $engine, Express $expressVersion", (stand) => {
  it("has all rows, not only a page, in the requested order", async () => {
    const api = await startApi(stand);
    api.source.add(...Array.from({ length: 2_500 }, (_, block) => transferIn(block)));
    const column = csvHeader.split(",").indexOf("blockNumber");
    const blocks = (lines: string[]) => lines.map((line) => Number(line.split(",")[column]));
    const ascending = Array.from({ length: 2_500 }, (_, block) => block);
    expect(blocks(await readLines(api, "?sort=asc"))).toEqual(ascending);
    expect(blocks(await readLines(api))).toEqual([...ascending].reverse());
    expect(blocks(await readLines(api, "?sort=asc&fromTs=1700002498"))).toEqual([2498, 2499]);
    expect(blocks(await readLines(api, "?sort=asc&limit=3"))).toEqual([0, 1, 2]);
  });

  it("has the fields of the records", async () => {
    const api = await startApi(stand);
    const transfer = transferIn(7, { amount: 2n ** 256n - 1n });
    api.source.add(transfer);
    const [line = ""] = await readLines(api);
    const names = csvHeader.trim().split(",");
    const fields = Object.fromEntries(line.split(",").map((value, at) => [names[at], value]));
    expect(fields).toEqual({
      blockchain: "plasma",
      token: "usdt",
      blockNumber: "7",
      blockHash: transfer.blockHash,
      timestamp: "1700000007000",
      transactionHash: transfer.transactionHash,
      transactionIndex: "0",
      logIndex: "0",
      transferIndex: "0",
      from: alice,
      to: bob,
      amount: (2n ** 256n - 1n).toString(),
      confirmations: "3",
      finalized: "true",
    });
  });

  it("is refused while too many are read with one key, or by one owner, until one is done", async () => {
    const exports = { total: 4, perCaller: 2, perOwner: 3 };
    const api = await startApi(stand, { exports });
    api.source.add(...Array.from({ length: 60_000 }, (_, block) => transferIn(block)));
    const keyOf = (owner: string) => api.createKey({ owner });
    const own = await keyOf("crowd");
    const first = await startReading(api, own);
    await startReading(api, own);
    const ask = (key: string) =>
      api.call(`${history}?limit=1`, { headers: { accept: "text/csv", "x-api-key": key } });
    const refused = await ask(own);
    expect(refused).toMatchObject({
      status: 429,
      body: { message: "2 CSV files are open with this key. Close one first." },
    });
    expect(refused.headers.get("retry-after")).toBe("10");
    await startReading(api, await keyOf("crowd"));
    expect(await ask(await keyOf("crowd"))).toMatchObject({ status: 429 });
    expect(await ask(await keyOf("other"))).toMatchObject({ status: 200 });
    first.destroy();
    await expect.poll(async () => (await ask(own)).status).toBe(200);
  });

  it("ends when its reader takes nothing for a while, and frees its place", async () => {
    const api = await startApi(stand, {
      exports: { total: 1, perCaller: 1 },
      heartbeatMs: 20,
      stallMs: 200,
    });
    api.source.add(...Array.from({ length: 60_000 }, (_, block) => transferIn(block)));
    await startReading(api, api.key);
    await expect
      .poll(async () => (await api.call(`${history}?limit=1`, asCsv)).status, { timeout: 20_000 })
      .toBe(200);
  });

  it("frees its place also where no reader is cut", async () => {
    const exports = { total: 1, perCaller: 1 };
    const api = await startApi(stand, { exports, stallMs: Number.POSITIVE_INFINITY });
    for (let time = 0; time < 3; time++)
      expect(await api.call(history, asCsv)).toMatchObject({ status: 200 });
  });

  it("has only its header where there are no rows", async () => {
    expect(await readLines(await startApi(stand))).toEqual([]);
  });

  it("is cut without an end when reading fails in the middle", async () => {
    const { url, key, source } = await startApi(stand);
    source.add(...Array.from({ length: 2_000 }, (_, block) => transferIn(block)));
    source.failAfter(1);
    const response = await fetch(`${url}${history}`, {
      headers: { "x-api-key": key, ...asCsv.headers },
    });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  it("is read from the database at the reader's pace, and no further after the reader has left", async () => {
    const { url, key, source, call } = await startApi(stand);
    source.add(...Array.from({ length: 60_000 }, (_, block) => transferIn(block)));
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { "x-api-key": key, ...asCsv.headers };
      get(`${url}${history}`, { headers }, resolve).on("error", reject);
    });
    response.pause();
    // Each of these is a round trip to the server. So the file has a hundred turns to run ahead of
    // its reader.
    const takeTurns = async () => {
      for (let turn = 0; turn < 100; turn += 1) await call("/api/v1/chains");
    };
    await takeTurns();
    const reads = source.reads();
    // The sockets' buffers hold far less than the whole.
    expect(reads).toBeLessThan(50);
    response.destroy();
    await takeTurns();
    expect(source.reads()).toBeLessThanOrEqual(reads + 1);
  });
});
