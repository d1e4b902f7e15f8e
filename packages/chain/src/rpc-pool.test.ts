import { inspect } from "node:util";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  createRpcPool,
  RpcClosedError,
  RpcNotReadyError,
  type RpcPool,
  type RpcPoolEvent,
  type RpcPoolOptions,
  RpcResponseError,
  RpcUnavailableError,
  RpcWrongChainError,
} from "./index.ts";
import { type FaultServer, honest, SECRET, startFaultServer } from "./testing/fault-server.ts";
import {
  answerError,
  answerMethod,
  answerStatus,
  brokenAnswers,
  limitBatch,
  loseAnswer,
} from "./testing/faults.ts";

const chainId = 9745;
const readHead = { method: "eth_blockNumber" };
let devnet: Devnet;
let first: FaultServer;
let second: FaultServer;
let pool: RpcPool;
let events: RpcPoolEvent[];

beforeAll(async () => {
  devnet = await startDevnet({ chainId });
});
afterAll(() => devnet.stop());

beforeEach(async () => {
  first = await startFaultServer(devnet.rpcUrl);
  second = await startFaultServer(devnet.rpcUrl);
});
afterEach(async () => {
  pool.close();
  await Promise.all([first.close(), second.close()]);
  expectNoSecret(events, pool.status());
});

function createPool(options: Partial<RpcPoolOptions> = {}) {
  events = [];
  pool = createRpcPool({
    chainId,
    rpcUrls: [first.url, second.url],
    timeoutMs: 5_000,
    patienceMs: 0,
    restMs: 100,
    maxResponseBytes: 1_000_000,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return pool;
}

/** Nothing that leaves the pool may show an endpoint's URL or any part of it. */
function expectNoSecret(...things: unknown[]) {
  const text = inspect(things, { depth: Number.POSITIVE_INFINITY, showHidden: true });
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain("127.0.0.1");
  expect(text).not.toMatch(/https?:\/\//);
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const error = await promise.then(
    () => expect.unreachable("it should have been rejected"),
    (reason: unknown) => reason,
  );
  expectNoSecret(error);
  return error;
}

function stateOf(endpoint: number) {
  return pool.status()[endpoint - 1]?.state;
}

describe("a faulty endpoint", () => {
  for (const [name, { fault, kind }] of Object.entries(brokenAnswers)) {
    const timeoutMs = kind === "timeout" ? 1_000 : 5_000;

    it(`that ${name} is followed by the next`, async () => {
      createPool({ timeoutMs });
      await pool.ready();
      first.set(fault);

      expect(await pool.request(readHead)).toMatch(/^0x/);

      expect(events[0]).toMatchObject({ type: "endpoint-failed", endpoint: 1, kind });
      expect(second.requests.at(-1)).toEqual(["eth_blockNumber"]);
    });

    it(`that ${name} is told by an error when there is no other`, async () => {
      createPool({ rpcUrls: [first.url], timeoutMs });
      await pool.ready();
      first.set(fault);

      const error = await rejection(pool.request(readHead));

      expect(error).toBeInstanceOf(RpcUnavailableError);
      expect(error).toMatchObject({ retryable: true, failures: [{ kind, endpoint: 1 }] });
    });
  }

  it("that refuses connections is followed by the next", async () => {
    createPool();
    await pool.ready();
    await first.close();

    expect(await pool.request(readHead)).toMatch(/^0x/);
    expect(events[0]).toMatchObject({ endpoint: 1, kind: "connection" });
  });

  it("rests as long as Retry-After says, and is not asked meanwhile", async () => {
    createPool();
    await pool.ready();
    first.set(answerStatus(429, { "retry-after": "30" }));
    await pool.request(readHead);
    const asked = first.requests.length;

    await pool.request(readHead);

    expect(first.requests.length).toBe(asked);
    expect(pool.status()[0]).toMatchObject({ state: "resting", lastFailure: "rate-limited" });
    expect(pool.status()[0]?.restMs).toBeGreaterThan(29_000);
  });

  it("understands Retry-After as a date, measured by the server's clock", async () => {
    createPool();
    await pool.ready();
    const date = new Date("2001-01-01T00:00:00Z");
    const later = new Date(date.getTime() + 20_000);
    first.set(answerStatus(429, { date: date.toUTCString(), "retry-after": later.toUTCString() }));

    await pool.request(readHead);

    expect(pool.status()[0]?.restMs).toBeGreaterThan(19_000);
    expect(pool.status()[0]?.restMs).toBeLessThan(21_000);
  });

  it("tells callers when it makes sense to come back", async () => {
    createPool({ rpcUrls: [first.url] });
    await pool.ready();
    first.set(answerStatus(503, { "retry-after": "5" }));
    await rejection(pool.request(readHead));

    const error = await rejection(pool.request(readHead));

    expect(error).toMatchObject({ failures: [{ kind: "resting" }], maybeSent: false });
    expect(error instanceof RpcUnavailableError && error.retryAfterMs).toBeGreaterThan(4_000);
  });

  it("is asked again while patience lasts, when it is the only one", async () => {
    createPool({ rpcUrls: [first.url], patienceMs: 5_000 });
    await pool.ready();
    let failuresLeft = 4;
    first.set((exchange) => {
      if (failuresLeft === 0) return honest(exchange);
      failuresLeft -= 1;
      exchange.response.destroy();
    });

    expect(await pool.request(readHead)).toMatch(/^0x/);
  });

  it("is used again after it recovered, and not before", async () => {
    createPool({ failureThreshold: 2 });
    await pool.ready();
    first.set(answerStatus(500));
    await pool.request(readHead);
    await pool.request(readHead);
    expect(stateOf(1)).toBe("resting");

    first.set(honest);
    await expect
      .poll(async () => {
        await pool.request(readHead);
        return stateOf(1);
      })
      .toBe("ready");

    const asked = second.requests.length;
    await pool.request(readHead);
    expect(second.requests.length).toBe(asked);
    expect(events.map((event) => event.type)).toContain("endpoint-recovered");
  });

  it("rests once for fifty requests that fail together", async () => {
    createPool({ failureThreshold: 1 });
    await pool.ready();
    first.set(answerStatus(500));

    await Promise.all(Array.from({ length: 50 }, () => pool.request(readHead)));

    expect(events.filter((event) => event.type === "endpoint-resting")).toHaveLength(1);
    expect(pool.status()[0]?.restMs).toBeLessThanOrEqual(100);
  });

  it("that comes back from a rest as another chain is never used again", async () => {
    createPool({ failureThreshold: 1 });
    await pool.ready();
    first.set(answerStatus(500));
    await pool.request(readHead);

    first.set(answerMethod("eth_chainId", "0x1"));
    await expect
      .poll(async () => {
        await pool.request(readHead);
        return stateOf(1);
      })
      .toBe("wrong-chain");
  });
});

describe("an error from the node", () => {
  it("is the answer, and nobody else is asked", async () => {
    createPool();
    await pool.ready();
    first.set(answerError(3, "execution reverted", "0x08c379a0"));
    const asked = second.requests.length;

    const error = await rejection(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toBeInstanceOf(RpcResponseError);
    expect(error).toMatchObject({ code: 3, data: "0x08c379a0", endpoint: 1, retryable: false });
    expect(second.requests.length).toBe(asked);
    expect(stateOf(1)).toBe("ready");
  });

  it("does not show the URL that the node echoes", async () => {
    createPool();
    await pool.ready();
    const echo = `POST ${first.url} failed for key ${SECRET}`;
    first.set(answerError(-32000, echo, { request: [echo] }));

    const error = await rejection(pool.request({ method: "eth_call", params: [{}, "latest"] }));

    expect(error).toMatchObject({ code: -32000 });
  });

  it("about a log query with too many results is not taken for a rate limit", async () => {
    createPool();
    await pool.ready();
    first.set(answerError(-32005, "query returned more than 10000 results"));

    const error = await rejection(pool.request({ method: "eth_getLogs", params: [{}] }));

    expect(error).toMatchObject({ name: "RpcResponseError", code: -32005 });
  });

  it("about the rate of log queries is a rate limit", async () => {
    createPool();
    await pool.ready();
    first.set(answerError(-32005, "daily request count exceeded, request rate limited"));

    await pool.request({ method: "eth_getLogs", params: [{ fromBlock: "latest" }] });

    expect(events[0]).toMatchObject({ endpoint: 1, kind: "rate-limited" });
  });
});

describe("the chain id", () => {
  it("of every endpoint is checked by ready()", async () => {
    createPool();
    second.set(answerMethod("eth_chainId", "0x1"));

    const error = await rejection(pool.ready());

    expect(error).toBeInstanceOf(RpcNotReadyError);
    expect(error).toMatchObject({
      retryable: false,
      problems: [{ name: "RpcWrongChainError", endpoint: 2, actualChainId: 1 }],
    });
  });

  it("is checked before an endpoint's first use, and a wrong one is passed over", async () => {
    createPool();
    first.set(answerMethod("eth_chainId", "0x1"));

    expect(await pool.request(readHead)).toMatch(/^0x/);

    expect(first.requests).toEqual([["eth_chainId"]]);
    expect(second.requests).toEqual([["eth_chainId"], ["eth_blockNumber"]]);
  });

  it("being wrong everywhere is not worth a retry", async () => {
    createPool({ rpcUrls: [first.url], patienceMs: 5_000 });
    first.set(answerMethod("eth_chainId", "0x1"));

    const error = await rejection(pool.request(readHead));

    expect(error).toMatchObject({ retryable: false });
    expect(error instanceof RpcUnavailableError && error.failures[0]).toBeInstanceOf(
      RpcWrongChainError,
    );
  });

  it("that an endpoint will not tell keeps it from being used", async () => {
    createPool({ rpcUrls: [first.url] });
    first.set(answerError(-32601, "method not found"));

    expect(await rejection(pool.ready())).toMatchObject({ problems: [{ kind: "malformed" }] });
    expect(stateOf(1)).toBe("resting");
  });

  it("of one endpoint is enough to be ready while another is down", async () => {
    createPool();
    await first.close();

    await pool.ready();

    expect(stateOf(1)).toBe("resting");
    expect(stateOf(2)).toBe("ready");
  });

  it("cannot be checked when all are down, which ready() tells of each", async () => {
    createPool();
    await Promise.all([first.close(), second.close()]);

    const error = await rejection(pool.ready());

    expect(error).toMatchObject({ retryable: true, problems: [{ endpoint: 1 }, { endpoint: 2 }] });
  });
});

describe("a call with effects", () => {
  it("is not repeated when a node may have executed it", async () => {
    createPool({ patienceMs: 1_000 });
    await pool.ready();
    const before = await devnet.client.getBlockNumber();
    first.set(loseAnswer);

    const error = await rejection(pool.request({ method: "evm_mine" }));

    expect(error).toMatchObject({ name: "RpcUnavailableError", maybeSent: true });
    expect(await devnet.client.getBlockNumber()).toBe(before + 1n);
  });

  it("goes to the next endpoint when it certainly was not sent", async () => {
    createPool();
    await pool.ready();
    const before = await devnet.client.getBlockNumber();
    await first.close();
    // The first request still finds the old connection, and cannot know what became of it.
    await pool.request(readHead);

    await pool.request({ method: "evm_mine" });

    expect(await devnet.client.getBlockNumber()).toBe(before + 1n);
  });
});

describe("many calls", () => {
  const calls = [readHead, { method: "eth_noSuchMethod" }, { method: "eth_gasPrice" }];

  it("travel in one HTTP request, and each has its own outcome", async () => {
    createPool();
    await pool.ready();

    const outcomes = await pool.requestMany(calls);

    expect(first.requests.at(-1)).toEqual(calls.map((call) => call.method));
    expect(outcomes).toMatchObject([
      { ok: true, endpoint: 1 },
      { ok: false, error: { code: -32601 } },
      { ok: true, endpoint: 1 },
    ]);
  });

  it("are matched by id when answers come in another order", async () => {
    createPool();
    await pool.ready();
    first.set(({ calls: received, reply }) => {
      const answers = received.map(({ id, method }) => ({ jsonrpc: "2.0", id, result: method }));
      reply(answers.reverse());
    });

    const outcomes = await pool.requestMany(calls);

    expect(outcomes).toMatchObject(calls.map(({ method }) => ({ ok: true, result: method })));
  });

  it("whose answer is missing are asked elsewhere, and only those", async () => {
    createPool();
    await pool.ready();
    first.set(async ({ forward, reply }) => {
      const answers = await forward();
      reply(Array.isArray(answers) ? answers.slice(0, 2) : answers);
    });

    const outcomes = await pool.requestMany(calls);

    expect(outcomes[2]).toMatchObject({ ok: true, endpoint: 2 });
    expect(second.requests.at(-1)).toEqual(["eth_gasPrice"]);
  });

  it("go one by one to a server without batches, which is remembered", async () => {
    createPool();
    await pool.ready();
    first.set(limitBatch(1));
    const three = [readHead, readHead, readHead];

    expect(await pool.requestMany(three)).toMatchObject(three.map(() => ({ endpoint: 1 })));
    const asked = first.requests.length;
    await pool.requestMany(three);

    expect(first.requests.slice(asked)).toEqual(three.map((call) => [call.method]));
    expect(events.at(-1)).toEqual({ type: "endpoint-batch-limit", endpoint: 1, calls: 1 });
  });

  it("go in smaller batches to a server that limits their size", async () => {
    createPool();
    await pool.ready();
    first.set(limitBatch(5));

    const outcomes = await pool.requestMany(Array.from({ length: 40 }, () => readHead));

    expect(outcomes.every((outcome) => outcome.ok)).toBe(true);
    expect(events).toContainEqual({ type: "endpoint-batch-limit", endpoint: 1, calls: 5 });
  });

  it("go in smaller batches to a server that answers 413 to large ones", async () => {
    createPool();
    await pool.ready();
    first.set((exchange) =>
      exchange.calls.length > 2 ? answerStatus(413)(exchange) : honest(exchange),
    );

    const outcomes = await pool.requestMany(Array.from({ length: 8 }, () => readHead));

    expect(outcomes.every((outcome) => outcome.ok && outcome.endpoint === 1)).toBe(true);
  });

  it("may be none", async () => {
    createPool();
    expect(await pool.requestMany([])).toEqual([]);
  });
});

describe("a block that must be there", () => {
  it("is asked from an endpoint that has it", async () => {
    createPool();
    await devnet.mine();
    const minBlock = await devnet.client.getBlockNumber();
    first.set(answerMethod("eth_blockNumber", "0x1"));

    const [outcome] = await pool.requestMany([{ method: "eth_gasPrice" }], { minBlock });

    expect(outcome).toMatchObject({ ok: true, endpoint: 2 });
  });

  it("is waited for while patience lasts", async () => {
    createPool({ patienceMs: 5_000 });
    const minBlock = (await devnet.client.getBlockNumber()) + 1n;
    const answer = pool.request({ method: "eth_gasPrice" }, { minBlock });
    await expect.poll(() => second.requests.length).toBeGreaterThan(1);

    await devnet.mine();

    expect(await answer).toMatch(/^0x/);
  });

  it("that nobody has is told as such", async () => {
    createPool();
    const error = await rejection(pool.request(readHead, { minBlock: 1_000_000n }));
    expect(error).toMatchObject({ failures: [{ kind: "behind" }, { kind: "behind" }] });
    expect(stateOf(1)).toBe("ready");
  });
});

describe("a lagging endpoint", () => {
  it("comes last until it has caught up", async () => {
    await devnet.mine(10);
    createPool();
    await pool.ready();
    first.set(answerMethod("eth_blockNumber", "0x1"));
    await pool.compareHeads();
    expect(pool.status()).toMatchObject([{ lagging: true }, { lagging: false }]);

    const [whileLagging] = await pool.requestMany([{ method: "eth_gasPrice" }]);
    first.set(honest);
    await pool.compareHeads();
    const [caughtUp] = await pool.requestMany([{ method: "eth_gasPrice" }]);

    expect(whileLagging).toMatchObject({ endpoint: 2 });
    expect(caughtUp).toMatchObject({ endpoint: 1 });
  });

  it("is found by traffic alone", async () => {
    await devnet.mine(10);
    createPool({ headCheckMs: 0 });
    first.set(answerMethod("eth_blockNumber", "0x1"));

    await expect
      .poll(async () => (await pool.requestMany([{ method: "eth_gasPrice" }]))[0])
      .toMatchObject({ endpoint: 2 });
  });
});

describe("a consistent read", () => {
  it("begins again at another endpoint when the first one dies in the middle", async () => {
    createPool();
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

  it("passes on whatever else it throws", async () => {
    createPool();
    const error = new Error("mine");
    await expect(pool.onEndpoint(() => Promise.reject(error))).rejects.toBe(error);
  });

  it("at a chosen endpoint never goes elsewhere", async () => {
    createPool();
    await pool.ready();
    second.set(answerStatus(500));

    const error = await rejection(
      Promise.resolve(pool.endpoints[1]?.request({ method: "eth_gasPrice" })),
    );

    expect(error).toMatchObject({ failures: [{ endpoint: 2 }] });
    expect(pool.endpoints[0]?.head()).toBeUndefined();
  });
});

describe("limits", () => {
  it("of requests at a time are kept, and nothing is lost", async () => {
    createPool({ maxInFlight: 3 });
    await pool.ready();
    const held: (() => void)[] = [];
    let most = 0;
    first.set(async (exchange) => {
      await new Promise<void>((resolve) => {
        held.push(resolve);
        most = Math.max(most, held.length);
      });
      await honest(exchange);
    });

    const answers = Promise.all(Array.from({ length: 30 }, () => pool.request(readHead)));
    for (let answered = 0; answered < 30; answered += 3) {
      await expect.poll(() => held.length).toBe(3);
      for (const release of held.splice(0)) release();
    }

    expect(await answers).toHaveLength(30);
    expect(most).toBe(3);
    expect(pool.status()[0]?.inFlight).toBe(0);
  });

  it("that leave no room in time send the request elsewhere, and blame nobody", async () => {
    createPool({ maxInFlight: 1 });
    await pool.ready();
    first.set(() => undefined);
    const controller = new AbortController();
    const slow = pool.request(readHead, { signal: controller.signal });

    const [outcome] = await pool.requestMany([readHead], { timeoutMs: 500 });

    expect(outcome).toMatchObject({ endpoint: 2, failures: [{ kind: "busy", maybeSent: false }] });
    controller.abort();
    await expect(slow).rejects.toThrow();
  });
});

describe("configuration", () => {
  it("errors are told all at once, by place and not by URL", () => {
    createPool();
    const rpcUrls = [first.url, `ftp://${SECRET}/`, "nonsense"];
    expect(() => createRpcPool({ chainId, rpcUrls })).toThrow(
      "rpcUrls[1] must begin with http:// or https://, or wss://; rpcUrls[2] is not a URL",
    );
    expect(() => createRpcPool({ chainId, rpcUrls: [] })).toThrow("rpcUrls is empty");
  });

  it("takes user and password from the URL", async () => {
    const rpcUrl = first.url.replace("http://", "http://somebody:pass%20word@");
    createPool({ rpcUrls: [rpcUrl] });
    let authorization: string | undefined;
    first.set((exchange) => {
      authorization = exchange.headers.authorization;
      return honest(exchange);
    });

    await pool.request(readHead);

    expect(authorization).toBe(`Basic ${btoa("somebody:pass word")}`);
  });

  it("with a listener that throws changes nothing", async () => {
    createPool({
      onEvent() {
        throw new Error("listener");
      },
    });
    await pool.ready();
    first.set(answerStatus(500));
    expect(await pool.request(readHead)).toMatch(/^0x/);
  });
});

describe("the end of a request", () => {
  it("comes at once when the caller aborts, with the caller's reason", async () => {
    createPool({ timeoutMs: 60_000 });
    await pool.ready();
    first.set(() => undefined);
    const controller = new AbortController();
    const answer = pool.request(readHead, { signal: controller.signal });
    await expect.poll(() => first.requests.length).toBe(2);
    const reason = new Error("enough");

    controller.abort(reason);

    await expect(answer).rejects.toBe(reason);
    expect(stateOf(1)).toBe("ready");
  });

  it("comes at once when the pool closes, and nothing stays alive", async () => {
    createPool({ timeoutMs: 60_000, maxInFlight: 2, patienceMs: 60_000 });
    await pool.ready();
    first.set(() => undefined);
    const answers = Array.from({ length: 5 }, () => pool.request(readHead));
    await expect.poll(() => first.requests.length).toBe(3);

    pool.close();

    for (const answer of answers) await expect(answer).rejects.toBeInstanceOf(RpcClosedError);
    await expect(pool.request(readHead)).rejects.toBeInstanceOf(RpcClosedError);
    await expect(pool.ready()).rejects.toBeInstanceOf(RpcClosedError);
    await expect.poll(() => pool.status()[0]?.inFlight).toBe(0);
  });
});
