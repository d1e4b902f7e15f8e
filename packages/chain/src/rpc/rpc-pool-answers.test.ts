import { describe, expect, it } from "vitest";
import { blockByNumber, parseBlockHeader, RpcResponseError } from "../index.ts";
import { secret } from "../testing/fault-server.ts";
import {
  answerError,
  answerMethod,
  answerStatus,
  changeAnswers,
  loseAnswer,
} from "../testing/faults.ts";
import { readHead, rejectionOf, stateOf, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();

describe("an error from the node", () => {
  it("is the answer where it is a revert, and no other endpoint is asked", async () => {
    const { first, second, pool } = open();
    await pool.ready();
    first.set(answerError(3, "execution reverted", "0x08c379a0"));
    const asked = second.requests.length;

    const error = await rejectionOf(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toBeInstanceOf(RpcResponseError);
    expect(error).toMatchObject({ code: 3, data: "0x08c379a0", endpoint: 1, retryable: false });
    expect(second.requests.length).toBe(asked);
    expect(stateOf(pool, 1)).toBe("ready");
  });

  it.each([
    [-32000, "header not found"],
    [-32000, "missing trie node 0x12 (path ) state is not available"],
    [-32601, "the method eth_call does not exist/is not available"],
    [-32603, "Internal error"],
    [-32000, "execution aborted (timeout = 5s)"],
  ])(
    "an error from the node that is the node's own sends the call to the next endpoint: %i %s",
    async (code, message) => {
      const { first, pool, events } = open();
      await pool.ready();
      first.set(answerError(code, message));

      expect(await pool.request({ method: "eth_call", params: [{}, "latest"] })).toBe("0x");

      expect(events).toMatchObject([{ type: "endpoint-failed", endpoint: 1, kind: "refused" }]);
      expect(stateOf(pool, 1)).toBe("ready");
    },
  );

  it("is the first endpoint's where each returns one, without a second round", async () => {
    const { first, second, pool, events } = open({ patienceMs: 60_000 });
    await pool.ready();
    first.set(answerError(-32000, "header not found"));
    second.set(answerError(-32603, "Internal error"));
    const asked = second.requests.length;

    const error = await rejectionOf(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toMatchObject({ name: "RpcResponseError", code: -32000, endpoint: 1 });
    expect(second.requests.length).toBe(asked + 1);
    expect(events).toEqual([]);
  });

  it("is the first endpoint's where the next one gives no answer", async () => {
    const { first, second, pool } = open({ patienceMs: 60_000 });
    await pool.ready();
    first.set(answerError(-32000, "header not found"));
    second.set(loseAnswer);

    const error = await rejectionOf(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toMatchObject({ name: "RpcResponseError", code: -32000, endpoint: 1 });
  });

  it("about a transaction stands: its sender decides about other nodes", async () => {
    const { first, second, pool } = open();
    await pool.ready();
    first.set(answerError(-32000, "rejected by policy"));
    const asked = second.requests.length;

    const call = { method: "eth_sendRawTransaction", params: ["0x02"] };

    expect(await rejectionOf(pool.request(call))).toMatchObject({ endpoint: 1 });
    expect(second.requests.length).toBe(asked);
  });

  it("is redacted where the node echoes the URL", async () => {
    const { first, pool } = open({ onlyFirst: true });
    await pool.ready();
    const echo = `POST ${first.url} failed for key ${secret}`;
    first.set(answerError(-32000, echo, { request: [echo] }));

    const error = await rejectionOf(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toMatchObject({ code: -32000 });
  });

  it("is no rate limit where it is about too many results of a log query", async () => {
    const { first, pool } = open({ onlyFirst: true });
    await pool.ready();
    first.set(answerError(-32005, "query returned more than 10000 results"));

    const error = await rejectionOf(pool.request({ method: "eth_getLogs", params: [{}] }));

    expect(error).toMatchObject({ name: "RpcResponseError", code: -32005 });
  });

  it("is a rate limit where it is about the rate of log queries", async () => {
    const { first, pool, events } = open();
    await pool.ready();
    first.set(answerError(-32005, "daily request count exceeded, request rate limited"));

    await pool.request({ method: "eth_getLogs", params: [{ fromBlock: "latest" }] });

    expect(events[0]).toMatchObject({ endpoint: 1, kind: "rate-limited" });
  });
});

describe("a malformed result", () => {
  const call = { method: "eth_call", params: [{}, "latest"] };
  const gasPrice = { method: "eth_gasPrice" };

  it.each([null, {}, 1, "no hex", "0xno", "0x1"])(
    "a malformed result sends the call to the next endpoint: %j",
    async (result) => {
      const { first, pool, events } = open();
      await pool.ready();
      first.set(answerMethod("eth_call", result));

      expect(await pool.request(call)).toBe("0x");

      expect(events).toMatchObject([{ type: "endpoint-failed", endpoint: 1, kind: "malformed" }]);
      expect(stateOf(pool, 1)).toBe("ready");
    },
  );

  it("is one that its caller cannot read", async () => {
    const { first, pool, events } = open();
    await pool.ready();
    first.set(answerMethod("eth_call", "0x12"));

    expect(await pool.request({ ...call, isAnswer: (result) => result === "0x" })).toBe("0x");

    expect(events).toMatchObject([{ endpoint: 1, kind: "malformed" }]);
  });

  it("leaves the other results of its batch", async () => {
    const { first, second, pool } = open();
    await pool.ready();
    first.set(
      changeAnswers((answer, { method }) =>
        method === "eth_call" ? { ...answer, result: "garbage" } : answer,
      ),
    );
    const asked = second.requests.length;

    const outcomes = await pool.requestMany([gasPrice, call, gasPrice]);

    expect(outcomes).toMatchObject([{ endpoint: 1 }, { endpoint: 2 }, { endpoint: 1 }]);
    expect(second.requests.length).toBe(asked + 1);
  });

  it("is the first endpoint's where each returns one, without a second round", async () => {
    const { first, second, pool, events } = open({ patienceMs: 60_000 });
    await pool.ready();
    first.set(answerMethod("eth_call", "garbage"));
    second.set(answerMethod("eth_call", null));
    const asked = second.requests.length;

    expect(await pool.request(call)).toBe("garbage");

    expect(second.requests.length).toBe(asked + 1);
    expect(events).toEqual([]);
  });

  it("gives way to the next one's error: its caller may know what to do about that", async () => {
    const { first, second, pool } = open({ patienceMs: 60_000 });
    await pool.ready();
    first.set(answerMethod("eth_call", "garbage"));
    second.set(answerError(-32000, "missing trie node"));

    expect(await rejectionOf(pool.request(call))).toMatchObject({
      name: "RpcResponseError",
      endpoint: 2,
    });
  });

  it("of the only endpoint is its caller's to judge", async () => {
    const { first, pool } = open({ onlyFirst: true });
    await pool.ready();
    first.set(answerMethod("eth_call", null));

    for (let attempt = 1; attempt <= 5; attempt += 1) expect(await pool.request(call)).toBe(null);

    expect(stateOf(pool, 1)).toBe("ready");
  });

  it("of a call with effects sends it to no other endpoint", async () => {
    const { devnet, pool } = open();
    await pool.ready();
    const before = await devnet.client.getBlockNumber();

    await pool.request({ method: "evm_mine", isAnswer: () => false });

    expect(await devnet.client.getBlockNumber()).toBe(before + 1n);
  });

  it("is a block's where it is no header", async () => {
    const { first, pool } = open();
    await pool.ready();
    first.set(answerMethod("eth_getBlockByNumber", { number: "0x1" }));

    expect(parseBlockHeader(await pool.request(blockByNumber("latest")))).toBeDefined();

    first.set(answerMethod("eth_getBlockByNumber", null));
    expect(parseBlockHeader(await pool.request(blockByNumber("latest")))).toBeDefined();
    expect(await pool.request(blockByNumber(1_000_000n))).toBe(null);
  });
});

describe("an RPC call with effects", () => {
  it("is not repeated when a node may have executed it", async () => {
    const { devnet, first, pool } = open({ patienceMs: 1_000 });
    await pool.ready();
    const before = await devnet.client.getBlockNumber();
    first.set(loseAnswer);

    const error = await rejectionOf(pool.request({ method: "evm_mine" }));

    expect(error).toMatchObject({ name: "RpcUnavailableError", maybeSent: true });
    expect(await devnet.client.getBlockNumber()).toBe(before + 1n);
  });

  it("goes to the next endpoint when it was certainly not sent", async () => {
    const { devnet, first, pool } = open();
    await pool.ready();
    const before = await devnet.client.getBlockNumber();
    await first.close();
    // The first request uses the old connection, and its outcome is unknown.
    await pool.request(readHead);

    await pool.request({ method: "evm_mine" });

    expect(await devnet.client.getBlockNumber()).toBe(before + 1n);
  });
});

describe("a consistent read", () => {
  it("starts over at another endpoint when the first one fails in the middle", async () => {
    const { first, pool } = open();
    await pool.ready();
    const seen: number[] = [];

    const answers = await pool.onEndpoint(async (endpoint) => {
      seen.push(endpoint.endpoint);
      const head = await endpoint.request(readHead);
      first.set(answerStatus(500));
      return [head, await endpoint.request({ method: "eth_gasPrice" })];
    });

    expect(seen).toEqual([1, 2]);
    expect(answers).toHaveLength(2);
  });

  it("starts over at another endpoint when the first one returns an error of its own", async () => {
    const { first, pool } = open();
    await pool.ready();
    first.set(answerError(-32603, "Internal error"));
    const seen: number[] = [];

    await pool.onEndpoint(async (endpoint) => {
      seen.push(endpoint.endpoint);
      await endpoint.request(readHead);
    });

    expect(seen).toEqual([1, 2]);
  });

  it("rethrows the error where every endpoint returns one", async () => {
    const { first, second, pool } = open({ patienceMs: 60_000 });
    await pool.ready();
    first.set(answerError(-32603, "Internal error"));
    second.set(answerError(-32601, "method not found"));

    const error = await rejectionOf(pool.onEndpoint((endpoint) => endpoint.request(readHead)));

    expect(error).toMatchObject({ name: "RpcResponseError", endpoint: 1 });
  });

  it("leaves a refused range of logs to its caller, who asks for less", async () => {
    const { first, second, pool } = open();
    await pool.ready();
    first.set(answerError(-32000, "block range too large"));
    const asked = second.requests.length;

    const error = await rejectionOf(
      pool.onEndpoint((endpoint) => endpoint.request({ method: "eth_getLogs", params: [{}] })),
    );

    expect(error).toMatchObject({ name: "RpcResponseError", endpoint: 1 });
    expect(second.requests.length).toBe(asked);
  });

  it("rethrows other errors", async () => {
    const { pool } = open();
    const error = new Error("mine");
    await expect(pool.onEndpoint(() => Promise.reject(error))).rejects.toBe(error);
  });

  it("stays at a chosen endpoint", async () => {
    const { second, pool } = open();
    await pool.ready();
    second.set(answerStatus(500));

    const error = await rejectionOf(
      Promise.resolve(pool.endpoints[1]?.request({ method: "eth_gasPrice" })),
    );

    expect(error).toMatchObject({ failures: [{ endpoint: 2 }] });
    expect(pool.endpoints[0]?.head()).toBeUndefined();
  });
});
