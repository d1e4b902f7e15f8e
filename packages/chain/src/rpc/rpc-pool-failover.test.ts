import { describe, expect, it } from "vitest";
import { RpcUnavailableError, systemClock } from "../index.ts";
import { honest } from "../testing/fault-server.ts";
import { answerMethod, answerStatus, brokenAnswers } from "../testing/faults.ts";
import { readHead, rejectionOf, stateOf, usePoolScene } from "../testing/pool-scene.ts";

const open = usePoolScene();

describe("a failing RPC endpoint", () => {
  for (const [name, { fault, kind }] of Object.entries(brokenAnswers)) {
    const timeoutMs = kind === "timeout" ? 2_000 : 5_000;

    it(`is followed by the next when it ${name}`, async () => {
      const { first, second, pool, events } = open({ timeoutMs });
      await pool.ready();
      first.set(fault);

      expect(await pool.request(readHead)).toMatch(/^0x/);

      expect(events[0]).toMatchObject({ type: "endpoint-failed", endpoint: 1, kind });
      expect(second.requests.at(-1)).toEqual(["eth_blockNumber"]);
    });

    it(`is reported by an error when it ${name} and there is no other`, async () => {
      const { first, pool } = open({ onlyFirst: true, timeoutMs });
      await pool.ready();
      first.set(fault);

      const error = await rejectionOf(pool.request(readHead));

      expect(error).toBeInstanceOf(RpcUnavailableError);
      expect(error).toMatchObject({ retryable: true, failures: [{ kind, endpoint: 1 }] });
    });
  }

  it("is followed by the next when it refuses connections", async () => {
    const { first, pool, events } = open();
    await pool.ready();
    await first.close();

    expect(await pool.request(readHead)).toMatch(/^0x/);
    expect(events[0]).toMatchObject({ endpoint: 1, kind: "connection" });
  });

  it("rests as long as Retry-After says, without requests", async () => {
    const { first, pool } = open();
    await pool.ready();
    first.set(answerStatus(429, { "retry-after": "30" }));
    await pool.request(readHead);
    const asked = first.requests.length;

    await pool.request(readHead);

    expect(first.requests.length).toBe(asked);
    expect(pool.status()[0]).toMatchObject({ state: "resting", lastFailure: "rate-limited" });
    expect(pool.status()[0]?.restMs).toBeGreaterThan(15_000);
  });

  it("may send Retry-After as a date, measured by the server's clock", async () => {
    const { first, pool } = open();
    await pool.ready();
    const date = new Date("2001-01-01T00:00:00Z");
    const later = new Date(date.getTime() + 20_000);
    first.set(answerStatus(429, { date: date.toUTCString(), "retry-after": later.toUTCString() }));

    await pool.request(readHead);

    expect(pool.status()[0]?.restMs).toBeGreaterThan(10_000);
    expect(pool.status()[0]?.restMs).toBeLessThan(21_000);
  });

  it("yields an error that says when to retry", async () => {
    const { first, pool } = open({ onlyFirst: true });
    await pool.ready();
    first.set(answerStatus(503, { "retry-after": "5" }));
    await rejectionOf(pool.request(readHead));

    const error = await rejectionOf(pool.request(readHead));

    expect(error).toMatchObject({ failures: [{ kind: "resting" }], maybeSent: false });
    expect(error instanceof RpcUnavailableError && error.retryAfterMs).toBeGreaterThan(2_000);
  });

  it("is retried within the time budget when it is the only one", async () => {
    const { first, pool } = open({ onlyFirst: true, patienceMs: 5_000 });
    await pool.ready();
    let failuresLeft = 4;
    first.set((exchange) => {
      if (failuresLeft === 0) return honest(exchange);
      failuresLeft -= 1;
      exchange.response.destroy();
    });

    expect(await pool.request(readHead)).toMatch(/^0x/);
  });

  it("is used again once it has recovered", async () => {
    const { first, second, pool, events } = open({ failureThreshold: 2, restMs: 2_000 });
    await pool.ready();
    first.set(answerStatus(500));
    await pool.request(readHead);
    await pool.request(readHead);
    expect(stateOf(pool, 1)).toBe("resting");

    first.set(honest);
    await expect
      .poll(async () => {
        await pool.request(readHead);
        return stateOf(pool, 1);
      })
      .toBe("ready");

    const asked = second.requests.length;
    await pool.request(readHead);
    expect(second.requests.length).toBe(asked);
    expect(events.map((event) => event.type)).toContain("endpoint-recovered");
  });

  it("rests once for fifty requests that fail together", async () => {
    const { first, pool, events } = open({ failureThreshold: 1, restMs: 30_000 });
    await pool.ready();
    first.set(answerStatus(500));

    await Promise.all(Array.from({ length: 50 }, () => pool.request(readHead)));

    expect(events.filter((event) => event.type === "endpoint-resting")).toHaveLength(1);
    expect(pool.status()[0]?.restMs).toBeLessThanOrEqual(30_000);
  });

  it("is used again once it returns the pool's chain, after a rest as another one", async () => {
    let passedMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + passedMs };
    const { first, second, pool, events } = open({
      failureThreshold: 1,
      headCheckMs: 600_000,
      clock,
    });
    await pool.ready();
    first.set(answerStatus(500));
    await pool.request(readHead);

    const wrong = answerMethod("eth_chainId", "0x1");
    first.set(wrong);
    await expect
      .poll(async () => {
        await pool.request(readHead);
        return stateOf(pool, 1);
      })
      .toBe("wrong-chain");

    // Its trial runs beside the request, which does not wait for it.
    let answer: (() => void) | undefined;
    first.set(
      (exchange) =>
        new Promise<void>((resolve) => {
          answer = () => resolve(wrong(exchange));
        }),
    );
    passedMs += 15_000;
    await pool.request(readHead);
    await expect.poll(() => answer).toBeDefined();
    answer?.();
    await expect.poll(() => stateOf(pool, 1)).toBe("wrong-chain");
    expect(pool.status()[0]).toMatchObject({ lastFailure: "wrong-chain", head: undefined });
    expect(pool.status()[0]?.restMs).toBeGreaterThan(15_000);
    first.set(honest);
    const asked = first.requests.length;
    await pool.request(readHead);
    expect(first.requests.length).toBe(asked);

    passedMs += 30_000;
    await pool.request(readHead);
    await expect.poll(() => stateOf(pool, 1)).toBe("ready");
    const others = second.requests.length;
    await pool.request(readHead);
    expect(second.requests.length).toBe(others);
    expect(events.at(-1)).toEqual({ type: "endpoint-recovered", endpoint: 1 });
  });
});
