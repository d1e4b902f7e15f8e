import { describe, expect, it } from "vitest";
import { createTurns } from "./turns.ts";

interface Service {
  isBusy: boolean;
  /** Names of requests, in the order of their attempts. */
  attempts: string[];
}

function createBusyService(): Service {
  return { isBusy: true, attempts: [] };
}

/** A request that must wait while the service is busy. */
function requestOf(name: string, service: Service) {
  return {
    key: "payer",
    attempt: async () => {
      service.attempts.push(name);
      return service.isBusy ? "busy" : "served";
    },
    mustWait: (result: string) => result === "busy",
    isGone: () => false,
  };
}

describe("a queue of one payer's requests", () => {
  it("serves them in order of arrival, while only the first polls", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let polls = 0;
    const first = requestOf("first", service);
    const firstTurn = turns.take({
      ...first,
      attempt() {
        polls += 1;
        if (polls === 5) service.isBusy = false;
        return first.attempt();
      },
    });
    await Promise.resolve();
    const others = ["second", "third"].map((name) => turns.take(requestOf(name, service)));
    expect(await Promise.all([firstTurn, ...others])).toEqual(["served", "served", "served"]);
    expect(service.attempts).toEqual([...Array(5).fill("first"), "second", "third"]);
  });

  it("serves another payer's request at once", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    const waiting = turns.take(requestOf("waiting", service));
    await Promise.resolve();
    const request = requestOf("other", { isBusy: false, attempts: [] });
    expect(await turns.take({ ...request, key: "other payer" })).toBe("served");
    service.isBusy = false;
    expect(await waiting).toBe("served");
  });

  it("ends the polls of a request whose caller is gone, and serves the next", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let isGone = false;
    const gone = turns.take({ ...requestOf("gone", service), isGone: () => isGone });
    await Promise.resolve();
    const next = turns.take(requestOf("next", service));
    isGone = true;
    expect(await gone).toBe("busy");
    service.isBusy = false;
    expect(await next).toBe("served");
  });

  it("returns the last result when its patience is over", async () => {
    const turns = createTurns({ patienceMs: 5, pauseMs: 1 });
    const service = createBusyService();
    expect(await turns.take(requestOf("first", service))).toBe("busy");
  });

  it("lets a request beyond its room attempt once, and wait for none", async () => {
    const turns = createTurns({ pauseMs: 1, maxWaiting: 1 });
    const service = createBusyService();
    const waiting = turns.take(requestOf("waiting", service));
    await Promise.resolve();
    expect(await turns.take(requestOf("beyond", service))).toBe("busy");
    expect(service.attempts.filter((name) => name === "beyond")).toEqual(["beyond"]);
    service.isBusy = false;
    expect(await waiting).toBe("served");
  });

  it("passes on the error of an attempt, and serves the next request", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let attempts = 0;
    const failing = turns.take({
      ...requestOf("failing", service),
      async attempt() {
        attempts += 1;
        if (attempts > 1) throw new Error("no answer");
        return "busy";
      },
    });
    await Promise.resolve();
    const next = turns.take(requestOf("next", service));
    service.isBusy = false;
    await expect(failing).rejects.toThrow("no answer");
    expect(await next).toBe("served");
  });
});
