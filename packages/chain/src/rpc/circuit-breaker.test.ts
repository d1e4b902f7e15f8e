import { describe, expect, it } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createCircuitBreaker } from "./circuit-breaker.ts";

function setUp() {
  const clock = createManualClock();
  const breaker = createCircuitBreaker({ clock, threshold: 3, restMs: 100, maxRestMs: 350 });
  return { clock, breaker };
}

describe("a circuit breaker", () => {
  it("opens after its limit of consecutive failures", () => {
    const { clock, breaker } = setUp();
    breaker.failed(clock.now());
    breaker.failed(clock.now());
    breaker.succeeded(clock.now());
    breaker.failed(clock.now());
    breaker.failed(clock.now());
    expect(breaker.state()).toBe("closed");

    breaker.failed(clock.now());

    expect(breaker.state()).toBe("open");
    expect(breaker.restMs()).toBe(100);
  });

  it("admits one trial after its rest, and closes when that succeeds", () => {
    const { clock, breaker } = setUp();
    breaker.failed(clock.now(), 0);
    clock.advance(100);
    expect(breaker.state()).toBe("half-open");

    breaker.succeeded(clock.now());

    expect(breaker.state()).toBe("closed");
  });

  it("doubles its rest with each failed trial up to a limit, and resets it when it closes", () => {
    const { clock, breaker } = setUp();
    const rests = [1, 2, 3, 4].map(() => {
      breaker.failed(clock.now(), 0);
      const restMs = breaker.restMs();
      clock.advance(restMs);
      return restMs;
    });
    expect(rests).toEqual([100, 200, 350, 350]);

    breaker.succeeded(clock.now());
    breaker.failed(clock.now(), 0);

    expect(breaker.restMs()).toBe(100);
  });

  it("rests at least as long as requested", () => {
    const { clock, breaker } = setUp();
    breaker.failed(clock.now(), 5_000);
    expect(breaker.restMs()).toBe(5_000);
  });

  it("ignores results of requests that began before it opened", () => {
    const { clock, breaker } = setUp();
    const startedAt = clock.now();
    clock.advance(10);
    breaker.failed(clock.now(), 0);

    breaker.failed(startedAt, 0);
    breaker.succeeded(startedAt);

    expect(breaker.state()).toBe("open");
    expect(breaker.restMs()).toBe(100);
  });
});
