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
    mayWait: () => true,
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
    expect(await gone).toBe("gone");
    service.isBusy = false;
    expect(await next).toBe("served");
  });

  it("returns the last result when its patience is over", async () => {
    const turns = createTurns({ patienceMs: 5, pauseMs: 1 });
    const service = createBusyService();
    expect(await turns.take(requestOf("first", service))).toBe("busy");
  });

  it("lets no request overtake those that wait, where it has no room for another", async () => {
    const turns = createTurns({ pauseMs: 1, maxWaiting: 1 });
    const service = createBusyService();
    const waiting = turns.take(requestOf("waiting", service));
    await Promise.resolve();
    service.isBusy = false;
    expect(await turns.take(requestOf("beyond", service))).toBe("no_place");
    expect(await waiting).toBe("served");
    expect(service.attempts).not.toContain("beyond");
  });

  it("lets no request that may not wait overtake those that wait", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    const waiting = turns.take(requestOf("waiting", service));
    await Promise.resolve();
    service.isBusy = false;
    const hasty = { ...requestOf("hasty", service), mayWait: () => false };
    expect(await turns.take(hasty)).toBe("no_place");
    expect(await waiting).toBe("served");
    expect(service.attempts).not.toContain("hasty");
    expect(await turns.take(hasty)).toBe("served");
  });

  it("ends the wait of those behind the first that may not wait any more, or are gone", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let mayWait = true;
    let isGone = false;
    const first = turns.take(requestOf("first", service));
    await Promise.resolve();
    const body = turns.take({ ...requestOf("body", service), mayWait: () => mayWait });
    const gone = turns.take({ ...requestOf("gone", service), isGone: () => isGone });
    const last = turns.take(requestOf("last", service));
    mayWait = false;
    isGone = true;
    // The first one still waits.
    expect(await Promise.all([body, gone])).toEqual(["no_place", "gone"]);
    service.isBusy = false;
    expect(await Promise.all([first, last])).toEqual(["served", "served"]);
    expect(new Set(service.attempts)).toEqual(new Set(["first", "last"]));
  });

  it("ends one wait at each poll where no request may wait, the newest first", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let places = 20;
    const outcomes = new Map<string, string>();
    const take = async (name: string) => {
      const hold = { ...requestOf(name, service), mayWait: () => places >= 20 };
      outcomes.set(name, await turns.take(hold));
      // Its body is closed some time after its wait has ended.
      await new Promise(setImmediate);
      places += 1;
    };
    const names = Array.from({ length: 20 }, (_, index) => `request ${index}`);
    const [first = "", ...others] = names;
    const taken = [take(first)];
    await Promise.resolve();
    taken.push(...others.map(take));
    places -= 2;
    await expect.poll(() => outcomes.size).toBe(2);
    expect([...outcomes.keys()]).toEqual(["request 19", "request 18"]);
    service.isBusy = false;
    await Promise.all(taken);
    expect(names.filter((name) => outcomes.get(name) === "served")).toEqual(names.slice(0, 18));
  });

  it("ends the wait of the first request last, where none may wait any more", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    let mayWait = true;
    const ended: string[] = [];
    const take = async (name: string) => {
      const outcome = await turns.take({ ...requestOf(name, service), mayWait: () => mayWait });
      ended.push(`${name}: ${outcome}`);
    };
    const taken = [take("first")];
    await Promise.resolve();
    taken.push(take("second"), take("third"));
    mayWait = false;
    await Promise.all(taken);
    expect(ended).toEqual(["third: no_place", "second: no_place", "first: busy"]);
  });

  it.each(["isGone", "mayWait"])("lets a request stay whose %s throws", async (question) => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    const first = turns.take(requestOf("first", service));
    await Promise.resolve();
    let asked = 0;
    const failing = turns.take({
      ...requestOf("failing", service),
      [question]() {
        asked += 1;
        // As it joins the queue, it answers.
        if (asked > 1 && service.isBusy) throw new Error("no answer");
        return question === "mayWait";
      },
    });
    const last = turns.take(requestOf("last", service));
    await expect.poll(() => asked).toBeGreaterThan(2);
    service.isBusy = false;
    expect(await Promise.all([first, failing, last])).toEqual(["served", "served", "served"]);
  });

  it("makes no attempt for a caller that is gone", async () => {
    const turns = createTurns({ pauseMs: 1 });
    const service = createBusyService();
    const gone = { ...requestOf("gone", service), isGone: () => true };
    expect(await turns.take(gone)).toBe("gone");
    const waiting = turns.take(requestOf("waiting", service));
    await Promise.resolve();
    const behind = turns.take(gone);
    service.isBusy = false;
    expect(await Promise.all([waiting, behind])).toEqual(["served", "gone"]);
    expect(service.attempts).not.toContain("gone");
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
