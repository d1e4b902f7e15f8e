import type { RequestListener } from "node:http";
import { listen } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished } from "vitest";
import { ApiError } from "../api-error.ts";
import { stands, startApi } from "../testing/api-server.ts";
import { alice, bob, transferIn } from "../testing/transfers.ts";
import { createTransferService } from "../transfer-service.ts";
import { ApiUnreachableError } from "./api-unreachable-error.ts";
import { createIndexerClient } from "./indexer-client.ts";

const owner = { blockchain: "plasma", token: "usdt", address: alice };

/** A server that is not the service. */
async function serve(answer: RequestListener): Promise<string> {
  const { url, close } = await listen(answer);
  onTestFinished(close);
  return url;
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe.each(stands)("the indexer client on $engine, Express $expressVersion", (stand) => {
  it("returns the service's answers unchanged", async () => {
    const { url, key, source } = await startApi(stand);
    const remote = createIndexerClient({ url: `${url}/`, apiKey: key });
    const local = createTransferService(source);
    source.add(...Array.from({ length: 25 }, (_, block) => transferIn(block)));
    const { transactionHash } = transferIn(3);

    for (const ask of [
      (service: typeof local) => service.listChains(),
      (service: typeof local) => service.getTokenTransfers(owner),
      (service: typeof local) => service.getTokenTransfers({ ...owner, limit: 3, sort: "asc" }),
      (service: typeof local) => service.getTokenTransfers({ ...owner, fromTs: 1_700_000_020 }),
      (service: typeof local) => service.getTokenBalances({ ...owner, address: bob }),
      (service: typeof local) =>
        service.getTransactionTransfers({ ...owner, txHash: transactionHash }),
      (service: typeof local) =>
        service.batchTokenTransfers([owner, { ...owner, token: "doge" }, { ...owner, limit: 1 }]),
      (service: typeof local) =>
        service.batchTokenBalances([
          { ...owner, address: bob },
          { ...owner, address: "0x" },
        ]),
    ]) {
      const answer = await ask(remote);
      expect(answer).toEqual(await ask(local));
    }
    const page = await remote.getTokenTransfers({ ...owner, limit: 10 });
    const cursor = page.next;
    expect(await remote.getTokenTransfers({ ...owner, cursor })).toEqual(
      await local.getTokenTransfers({ ...owner, cursor }),
    );
    expect(await remote.getHealth()).toMatchObject({ status: "healthy" });
  });

  it("resolves with the state of an unhealthy service", async () => {
    const { url, key, source } = await startApi(stand);
    source.setHealth({ status: "unhealthy", isDatabaseHealthy: false, tokens: [] });
    const client = createIndexerClient({ url, apiKey: key });
    expect(await client.getHealth()).toMatchObject({ status: "unhealthy" });
  });

  it("iterates over all pages", async () => {
    const { url, key, source } = await startApi(stand);
    source.add(...Array.from({ length: 2_100 }, (_, block) => transferIn(block)));
    const client = createIndexerClient({ url, apiKey: key });
    const blocks: number[] = [];
    for await (const { blockNumber } of client.allTokenTransfers({ ...owner, sort: "asc" })) {
      blocks.push(blockNumber);
    }
    expect(blocks).toEqual(Array.from({ length: 2_100 }, (_, block) => block));
  });

  it("manages keys", async () => {
    const { url, createKey } = await startApi(stand);
    const client = createIndexerClient({ url, apiKey: await createKey({ owner: "shop" }) });
    const made = await client.createApiKey({ label: "second" });
    expect((await client.listApiKeys()).keys).toHaveLength(2);
    const second = createIndexerClient({ url, apiKey: made.key });
    expect(await second.listChains()).toHaveProperty("chains");
    expect(await client.deleteApiKey(made.hashedKey)).toEqual({ success: true });
    expect(await failureOf(second.listChains())).toMatchObject({ status: 401 });
  });

  it("throws the service's refusal, with its retry time", async () => {
    const { url, createKey, key } = await startApi(stand);
    const client = createIndexerClient({ url, apiKey: key });
    const bad = await failureOf(client.getTokenBalances({ ...owner, token: "a/b?c" }));
    expect(bad).toBeInstanceOf(ApiError);
    expect(bad).toMatchObject({ status: 400, error: "Bad Request", retryable: false });
    const missing = client.getTransactionTransfers({ ...owner, txHash: `0x${"0".repeat(64)}` });
    expect(await failureOf(missing)).toMatchObject({ status: 404, error: "Not Found" });

    const limited = createIndexerClient({ url, apiKey: await createKey() });
    for (let count = 0; count < 4; count += 1) await limited.getTokenBalances(owner);
    const refused = await failureOf(limited.getTokenBalances(owner));
    expect(refused).toMatchObject({
      status: 429,
      retryable: true,
      retryAfterSeconds: expect.any(Number),
    });
  });

  it("watches an address", async () => {
    const { url, key, source } = await startApi(stand);
    const client = createIndexerClient({ url, apiKey: key });
    const abort = new AbortController();
    source.add(transferIn(1));
    source.retract(transferIn(1));
    const watching = client.watchTokenTransfers(owner, { lastEventId: "0", signal: abort.signal });
    expect((await watching.next()).value).toMatchObject({
      type: "transfer",
      id: "1",
      transfer: { blockNumber: 1 },
    });
    expect((await watching.next()).value).toMatchObject({ type: "retraction", id: "2" });
    abort.abort();
    expect(await watching.next()).toMatchObject({ done: true });
  });

  it("stops watching after a permanent error", async () => {
    const { url } = await startApi(stand);
    const client = createIndexerClient({ url });
    expect(await failureOf(client.watchTokenTransfers(owner).next())).toMatchObject({
      status: 401,
    });
  });
});

describe("the indexer client of a foreign server", () => {
  it("tells a fault from an answer", async () => {
    const page = await serve((_request, response) => response.end("<html>Hello</html>"));
    expect(await failureOf(createIndexerClient({ url: page }).listChains())).toBeInstanceOf(
      ApiUnreachableError,
    );
    const other = await serve((_request, response) => response.end('{"chains":[{"id":1}]}'));
    expect(await failureOf(createIndexerClient({ url: other }).listChains())).toBeInstanceOf(
      ApiUnreachableError,
    );
    const gateway = await serve((_request, response) => {
      response.writeHead(502, { "retry-after": "7" }).end("Bad gateway");
    });
    expect(await failureOf(createIndexerClient({ url: gateway }).listChains())).toMatchObject({
      name: "ApiError",
      status: 502,
      retryable: true,
      retryAfterSeconds: 7,
    });
    const silent = await serve(() => undefined);
    const client = createIndexerClient({ url: silent, timeoutMs: 50 });
    expect(await failureOf(client.listChains())).toBeInstanceOf(ApiUnreachableError);
  });

  it("resumes a cut stream after its last event", async () => {
    const places: unknown[] = [];
    const { amount, ...transfer } = transferIn(5);
    const data = JSON.stringify({ ...transfer, amount: amount.toString() });
    const url = await serve((request, response) => {
      places.push(request.headers["last-event-id"]);
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (places.length === 1) {
        response.end(`id: 7\nevent: transfer\ndata: ${data}\n\nid: 9\n\nid: 10\nevent: tra`);
      } else response.write(`id: 11\r\nevent: retraction\r\ndata: ${data}\r\n\r\n`);
    });
    const abort = new AbortController();
    const { signal } = abort;
    const watching = createIndexerClient({ url }).watchTokenTransfers(owner, { signal });
    expect((await watching.next()).value).toMatchObject({ type: "transfer", id: "7" });
    expect((await watching.next()).value).toMatchObject({ type: "retraction", id: "11" });
    expect(places).toEqual([undefined, "9"]);
    abort.abort();
    expect(await watching.next()).toMatchObject({ done: true });
  });

  it("sends its key to no other server, and follows no redirect with it", async () => {
    const keys: unknown[] = [];
    const other = await serve((request, response) => {
      keys.push(request.headers["x-api-key"]);
      response.end("[]");
    });
    const url = await serve((request, response) => {
      response.writeHead(307, { location: `${other}${request.url}?key=csk_secret` }).end();
    });
    const client = createIndexerClient({ url, apiKey: "csk_secret" });
    const error = await failureOf(client.listChains());
    expect(error).toBeInstanceOf(ApiUnreachableError);
    expect(String(error)).toContain(`redirects to ${other}`);
    expect(String(error)).not.toContain("secret");
    expect(keys).toEqual([]);
  });

  it("reports an unreachable server", async () => {
    const url = "http://127.0.0.1:1";
    const error = await failureOf(createIndexerClient({ url, apiKey: "csk_secret" }).listChains());
    expect(error).toBeInstanceOf(ApiUnreachableError);
    expect(String(error)).not.toContain("secret");
  });
});
