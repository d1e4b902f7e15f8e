import { describe, expect, it } from "vitest";
import { honest } from "../testing/fault-server.ts";
import { answerStatus, limitBatch } from "../testing/faults.ts";
import { readHead, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();

describe("a batch of calls", () => {
  const calls = [readHead, { method: "eth_noSuchMethod" }, { method: "eth_gasPrice" }];

  it("travels in one HTTP request, with an outcome per call", async () => {
    const { first, pool } = open();
    await pool.ready();

    const outcomes = await pool.requestMany(calls);

    expect(first.requests.at(-1)).toEqual(calls.map((call) => call.method));
    expect(outcomes).toMatchObject([
      { ok: true, endpoint: 1 },
      { ok: false, error: { code: -32601 } },
      { ok: true, endpoint: 1 },
    ]);
  });

  it("is matched by id when answers come in another order", async () => {
    const { first, pool } = open();
    await pool.ready();
    const inOrder = await pool.endpoints[1]?.requestMany(calls);
    first.set(async ({ forward, reply }) => {
      const answers = await forward();
      reply(Array.isArray(answers) ? answers.reverse() : answers);
    });

    const outcomes = await pool.requestMany(calls);

    const resultsOf = (all: typeof outcomes = []) => all.map((each) => each.ok && each.result);
    expect(resultsOf(outcomes)).toEqual(resultsOf(inOrder));
    expect(new Set(resultsOf(outcomes)).size).toBe(calls.length);
  });

  it("is asked elsewhere for its missing answers alone", async () => {
    const { first, second, pool } = open();
    await pool.ready();
    first.set(async ({ forward, reply }) => {
      const answers = await forward();
      reply(Array.isArray(answers) ? answers.slice(0, 2) : answers);
    });

    const outcomes = await pool.requestMany(calls);

    expect(outcomes[2]).toMatchObject({ ok: true, endpoint: 2 });
    expect(second.requests.at(-1)).toEqual(["eth_gasPrice"]);
  });

  it("goes one by one to a server without batch support, which is remembered", async () => {
    const { first, pool, events } = open();
    await pool.ready();
    first.set(limitBatch(1));
    const three = [readHead, readHead, readHead];

    expect(await pool.requestMany(three)).toMatchObject(three.map(() => ({ endpoint: 1 })));
    const asked = first.requests.length;
    await pool.requestMany(three);

    expect(first.requests.slice(asked)).toEqual(three.map((call) => [call.method]));
    expect(events.at(-1)).toEqual({ type: "endpoint-batch-limit", endpoint: 1, calls: 1 });
  });

  it("is split for a server that limits its size", async () => {
    const { first, pool, events } = open();
    await pool.ready();
    first.set(limitBatch(5));

    const outcomes = await pool.requestMany(Array.from({ length: 40 }, () => readHead));

    expect(outcomes.every((outcome) => outcome.ok)).toBe(true);
    expect(events).toContainEqual({ type: "endpoint-batch-limit", endpoint: 1, calls: 5 });
  });

  it("is split for a server that answers 413", async () => {
    const { first, pool } = open();
    await pool.ready();
    first.set((exchange) =>
      exchange.calls.length > 2 ? answerStatus(413)(exchange) : honest(exchange),
    );

    const outcomes = await pool.requestMany(Array.from({ length: 8 }, () => readHead));

    expect(outcomes.every((outcome) => outcome.ok && outcome.endpoint === 1)).toBe(true);
  });

  it("may be empty", async () => {
    const { pool } = open();
    expect(await pool.requestMany([])).toEqual([]);
  });
});
