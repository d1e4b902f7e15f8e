import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { createPostgresUrl, engines } from "../testing/engines.ts";
import { openTestOutbox, type TestOutbox } from "../testing/outbox.ts";
import { appendEvent } from "./append-event.ts";
import { claimDeliveries } from "./claim-deliveries.ts";
import { type Conclusion, concludeDeliveries } from "./conclude-deliveries.ts";
import { healClock } from "./heal-clock.ts";
import { listDead, listEndpoints, readBacklog } from "./list-deliveries.ts";
import { dropListener, dropLostListeners, takeEvents } from "./listeners.ts";
import { pruneDeliveries } from "./prune-deliveries.ts";
import { registerEndpoints } from "./register-endpoints.ts";
import { replayDeliveries } from "./replay-deliveries.ts";

const claimMs = 60_000;
const day = 86_400_000;
const hook = (id: string) => ({
  id,
  url: `https://example.com/${id}`,
  secrets: ["ab12"],
  types: ["thing.changed"],
});

async function claim(outbox: TestOutbox, { endpoint = "a", claim = "one", limit = 10 } = {}) {
  const { deliveries } = await claimDeliveries(outbox, { endpoint, claim, claimMs, limit });
  return deliveries;
}

async function conclude(
  outbox: TestOutbox,
  conclusions: readonly Conclusion[],
  { endpoint = "a", claim = "one" } = {},
) {
  return concludeDeliveries(outbox, { endpoint, claim }, conclusions);
}

const stateOf = ({ payload }: { payload: string }): unknown => JSON.parse(payload).state;

describe.each(engines)("an outbox on $engine", ({ createUrl }) => {
  it("has no event without a subscription, and one for each endpoint with one", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await outbox.change("x", "one");
    await registerEndpoints(outbox, [{ ...hook("a"), types: ["thing.deleted"] }]);
    await outbox.change("x", "two");
    expect(await outbox.count("outbox_events")).toBe(0);
    await registerEndpoints(outbox, [hook("a"), hook("b")]);
    await outbox.change("x", "three");
    const [first] = await claim(outbox);
    const [second] = await claim(outbox, { endpoint: "b" });
    expect(first).toMatchObject({ key: "x", type: "thing.changed", attempts: 0 });
    expect(first?.id).toMatch(/^[0-9a-f]{16}$/);
    expect(first && stateOf(first)).toBe("three");
    expect(second).toEqual(first);
    expect(Math.abs((first?.createdAt ?? 0) - Date.now())).toBeLessThan(day);
  });

  it("writes no event of a change that is undone", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    const undone = outbox.database.transaction(async (tx) => {
      await sql`update things set state = 'two'`.execute(tx);
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await outbox.count("outbox_events")).toBe(1);
    expect(await outbox.count("outbox_deliveries")).toBe(1);
  });

  it("gives the events of a key one after the other, and those of other keys meanwhile", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    for (const state of ["one", "two", "three"]) await outbox.change("x", state);
    const [first, ...none] = await claim(outbox);
    expect(none).toEqual([]);
    await outbox.change("y", "one");
    const others = await claim(outbox, { claim: "two" });
    expect(others.map(({ key }) => key)).toEqual(["y"]);
    if (first === undefined) throw new Error("Nothing was claimed");
    expect(stateOf(first)).toBe("one");
    await conclude(outbox, [{ ...first, outcome: "failed", error: "500", retryInMs: 5_000 }]);
    expect(await claim(outbox)).toEqual([]);
    await outbox.advance(5_000);
    const [again] = await claim(outbox);
    expect(again).toEqual({ ...first, attempts: 1 });
    await conclude(outbox, [{ ...first, outcome: "delivered" }]);
    const [second] = await claim(outbox);
    expect(second && stateOf(second)).toBe("two");
    await conclude(outbox, [{ seq: second?.seq ?? 0, key: "x", outcome: "dead", error: "404" }]);
    const [third] = await claim(outbox);
    expect(third && stateOf(third)).toBe("three");
  });

  it("gives a claim to another process when it has ended, and ignores the first one then", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    const [first] = await claim(outbox);
    if (first === undefined) throw new Error("Nothing was claimed");
    expect(await claim(outbox, { claim: "two" })).toEqual([]);
    await outbox.advance(claimMs);
    expect(await claim(outbox, { claim: "two" })).toEqual([first]);
    expect(await conclude(outbox, [{ ...first, outcome: "delivered" }])).toEqual([]);
    expect(await conclude(outbox, [{ ...first, outcome: "delivered" }], { claim: "two" })).toEqual([
      first.seq,
    ]);
  });

  it("has released deliveries due at once, without an attempt", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    const [first] = await claim(outbox);
    if (first === undefined) throw new Error("Nothing was claimed");
    await conclude(outbox, [{ ...first, outcome: "released" }]);
    expect(await claim(outbox, { claim: "two" })).toEqual([first]);
  });

  it("gives each event to one of several processes that claim at once", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    for (let id = 0; id < 40; id++) {
      await outbox.change(`thing ${id}`, "one");
      await outbox.change(`thing ${id}`, "two");
    }
    const seen: string[] = [];
    for (let round = 0; round < 30 && seen.length < 80; round++) {
      await Promise.all(
        ["one", "two", "three"].map(async (name) => {
          const deliveries = await claim(outbox, { claim: name, limit: 7 });
          // Before the conclusion, after which another one may claim the next of the key.
          for (const each of deliveries) seen.push(`${each.key} ${stateOf(each)}`);
          const ended = deliveries.map(
            ({ seq, key }) => ({ seq, key, outcome: "delivered" }) as const,
          );
          await conclude(outbox, ended, { claim: name });
        }),
      );
      // Those that were put off are due.
      await outbox.advance(1_000);
    }
    expect(new Set(seen).size).toBe(80);
    expect(seen).toHaveLength(80);
    for (let id = 0; id < 40; id++) {
      expect(seen.indexOf(`thing ${id} one`)).toBeLessThan(seen.indexOf(`thing ${id} two`));
    }
  });

  it("looks at those that wait behind a failing one once in a while, and finds the others", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    for (let id = 0; id < 5; id++) await outbox.change(`thing ${id}`, "one");
    for (const first of await claim(outbox)) {
      await conclude(outbox, [{ ...first, outcome: "failed", error: "500", retryInMs: day }]);
    }
    for (let id = 0; id < 5; id++) await outbox.change(`thing ${id}`, "two");
    await outbox.change("other", "one");
    const wish = { endpoint: "a", claim: "one", claimMs, limit: 5 };
    expect(await claimDeliveries(outbox, wish)).toEqual({ deliveries: [], mayBeMore: true });
    const others = await claim(outbox);
    expect(others.map(({ key }) => key)).toEqual(["other"]);
    await conclude(
      outbox,
      others.map(({ seq, key }) => ({ seq, key, outcome: "delivered" })),
    );
    expect(await claimDeliveries(outbox, wish)).toEqual({ deliveries: [], mayBeMore: false });
    // A receiver that is down for days has a million of them: not until the failing one is tried.
    await outbox.advance(day - 1);
    expect(await claimDeliveries(outbox, wish)).toEqual({ deliveries: [], mayBeMore: false });
    await outbox.advance(1);
    const again = await claim(outbox);
    expect(again).toHaveLength(5);
    const ended = again.map(({ seq, key }) => ({ seq, key, outcome: "delivered" }) as const);
    await conclude(outbox, ended);
    expect((await claim(outbox)).map(stateOf)).toEqual(Array(5).fill("two"));
  });

  it("has everything due after the clock was put back", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    await outbox.change("y", "one");
    const [first] = await claim(outbox, { limit: 1 });
    if (first === undefined) throw new Error("Nothing was claimed");
    await conclude(outbox, [{ ...first, outcome: "failed", error: "500", retryInMs: 5_000 }]);
    await claim(outbox);
    await outbox.advance(-day);
    // New events have no time.
    await outbox.change("z", "one");
    expect((await claim(outbox)).map(({ key }) => key)).toEqual(["z"]);
    await healClock(outbox, { endpoint: "a", claimMs, waitMs: day / 2 });
    const due = await claim(outbox, { claim: "two" });
    expect(due.map(({ key }) => key)).toEqual(["x", "y"]);
  });

  it("keeps claims and waits of now when the clock is healed", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    await claim(outbox);
    await healClock(outbox, { endpoint: "a", claimMs, waitMs: day / 2 });
    expect(await claim(outbox, { claim: "two" })).toEqual([]);
  });

  it("lists the dead, and replays by id and by time, in bounded steps", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a"), hook("b")]);
    for (const id of ["x", "y", "z"]) await outbox.change(id, "one");
    const all = await claim(outbox);
    await conclude(
      outbox,
      all.map(({ seq, key }) =>
        key === "y"
          ? { seq, key, outcome: "delivered" as const }
          : { seq, key, outcome: "dead" as const, error: "answered 404" },
      ),
    );
    const [last, first] = await listDead(outbox, { limit: 10 });
    expect(last).toMatchObject({ key: "z", endpoint: "a", error: "answered 404", attempts: 1 });
    expect(first).toMatchObject({ key: "x" });
    const before = last && { endedAt: last.endedAt, seq: last.seq };
    expect(await listDead(outbox, { limit: 10, before })).toEqual([first]);
    expect(await readBacklog(outbox, "a")).toMatchObject({ pending: 0, dead: 2 });
    expect(await readBacklog(outbox, "b")).toMatchObject({ pending: 3, dead: 0 });

    const [x] = all;
    if (x === undefined) throw new Error("Nothing was claimed");
    const start = { after: 0, limit: 2 };
    const other = { seq: x.seq, id: "another" };
    expect((await replayDeliveries(outbox, { event: other }, start)).replayed).toBe(0);
    expect(await replayDeliveries(outbox, { event: x }, start)).toEqual({
      replayed: 1,
      next: undefined,
    });
    expect((await claim(outbox)).map(({ key }) => key)).toEqual(["x"]);
    // The one under way is left alone, and so are those of the other endpoint.
    const range = { endpoint: "a", from: 0 };
    const step = await replayDeliveries(outbox, range, start);
    expect(step).toEqual({ replayed: 1, next: all[1]?.seq });
    const rest = await replayDeliveries(outbox, range, { after: step.next ?? 0, limit: 2 });
    expect(rest).toEqual({ replayed: 1, next: undefined });
    expect((await claim(outbox)).map(({ key }) => key)).toEqual(["y", "z"]);
    // Each step reads few rows, however far away those of the range are: it holds the writer.
    const none = { to: 1 };
    const bounded = { ...start, maxRead: 2 };
    expect(await replayDeliveries(outbox, none, bounded)).toEqual({
      replayed: 0,
      next: all[1]?.seq,
    });
    const end = { ...bounded, after: all[1]?.seq ?? 0 };
    expect(await replayDeliveries(outbox, none, end)).toEqual({ replayed: 0, next: undefined });
  });

  it("deletes what ended long ago, in bounded steps, with the events that none needs", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a"), hook("b")]);
    for (const id of ["x", "y", "z"]) await outbox.change(id, "one");
    for (const endpoint of ["a", "b"]) {
      const claimed = await claim(outbox, { endpoint });
      await conclude(
        outbox,
        claimed.map(({ seq, key }) =>
          key === "z" && endpoint === "b"
            ? { seq, key, outcome: "dead" as const, error: "404" }
            : { seq, key, outcome: "delivered" as const },
        ),
        { endpoint },
      );
    }
    const kept = { deliveredMs: 30 * day, deadMs: 90 * day, limit: 2 };
    await outbox.advance(30 * day);
    expect(await pruneDeliveries(outbox, kept)).toBe(false);
    await outbox.advance(1);
    expect(await pruneDeliveries(outbox, kept)).toBe(true);
    while (await pruneDeliveries(outbox, kept));
    expect(await outbox.count("outbox_deliveries")).toBe(1);
    expect(await outbox.count("outbox_events")).toBe(1);
    await outbox.advance(60 * day);
    await pruneDeliveries(outbox, kept);
    expect(await outbox.count("outbox_events")).toBe(0);
  });

  it("deletes what is pending of a removed endpoint, once it is as old as what is dead", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a"), hook("b")]);
    for (const key of ["x", "y", "z"]) await outbox.change(key, "one");
    // Triggers take the time of the database.
    await sql`update outbox_events set created_at = (select now_ms from clock)`.execute(outbox.db);
    await registerEndpoints(outbox, [hook("b")]);
    const kept = { deliveredMs: 30 * day, deadMs: 90 * day, limit: 2 };
    const readPending = async () => (await listEndpoints(outbox)).map(({ pending }) => pending);
    await outbox.advance(90 * day);
    await outbox.change("x", "two");
    // A clock that was behind for a moment has written it: it ages no earlier one.
    await sql`update outbox_events set created_at = 0 where seq = 4`.execute(outbox.db);
    while (await pruneDeliveries(outbox, kept));
    expect(await readPending()).toEqual([3, 4]);
    await outbox.advance(1);
    while (await pruneDeliveries(outbox, kept));
    expect(await readPending()).toEqual([0, 4]);
    expect(await outbox.count("outbox_deliveries")).toBe(4);
    await registerEndpoints(outbox, []);
    await sql`update outbox_events set created_at = (select now_ms from clock) where seq = 4`.execute(
      outbox.db,
    );
    while (await pruneDeliveries(outbox, kept));
    expect(await outbox.count("outbox_events")).toBe(1);
  });

  it("gives a listener the events since its first call, until it ends or is silent for a minute", async () => {
    const outbox = await openTestOutbox(await createUrl());
    const wish = { listener: "me", types: ["thing.changed"], limit: 10 };
    await outbox.change("x", "one");
    expect(await takeEvents(outbox, wish)).toEqual([]);
    await outbox.change("x", "two");
    await registerEndpoints(outbox, []);
    await outbox.change("x", "three");
    expect((await takeEvents(outbox, wish)).map(stateOf)).toEqual(["two"]);
    expect((await takeEvents(outbox, wish)).map(stateOf)).toEqual(["three"]);
    expect(await takeEvents(outbox, wish)).toEqual([]);
    await outbox.advance(60_001);
    await dropLostListeners(outbox);
    await outbox.change("x", "four");
    expect(await outbox.count("outbox_events")).toBe(2);
    await takeEvents(outbox, wish);
    await dropLostListeners(outbox);
    await outbox.change("x", "five");
    await dropListener(outbox, "me");
    await outbox.change("x", "six");
    expect(await outbox.count("outbox_events")).toBe(3);
    expect(await listEndpoints(outbox)).toEqual([]);
    await pruneDeliveries(outbox, { deliveredMs: day, deadMs: day, limit: 10 });
    expect(await outbox.count("outbox_events")).toBe(2);
  });

  it("writes an event for the test of an enabled endpoint alone", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    const event = { endpoint: "a", key: "test", type: "test", payload: "{}" };
    expect(await appendEvent(outbox, event)).toBe(true);
    expect(await claim(outbox)).toMatchObject([{ key: "test", type: "test", payload: "{}" }]);
    expect(await appendEvent(outbox, { ...event, endpoint: "b" })).toBe(false);
  });

  it("writes nothing more for an endpoint that is not named any more, and keeps its pending ones", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    await registerEndpoints(outbox, [hook("b")]);
    await outbox.change("x", "two");
    expect(await listEndpoints(outbox)).toMatchObject([
      { id: "a", isEnabled: false, types: [], pending: 1, secrets: ["ab12"] },
      { id: "b", isEnabled: true, types: ["thing.changed"], pending: 1 },
    ]);
    await registerEndpoints(outbox, [hook("a")]);
    expect((await claim(outbox)).map(stateOf)).toEqual(["one"]);
  });
});

describe("an outbox on postgres", () => {
  it("claims by an index, however many rows have ended", async () => {
    const outbox = await openTestOutbox(await createPostgresUrl());
    await registerEndpoints(outbox, [hook("a")]);
    await outbox.change("x", "one");
    const { rows } = await sql<{ "QUERY PLAN": string }>`
      explain select event_seq from outbox_deliveries as due
      where endpoint_id = 'a' and state = 'pending' and next_at <= (select ${outbox.dialect.nowMs()})
      order by next_at, event_seq limit 10
    `.execute(outbox.db);
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toContain("outbox_due");
    expect(plan).toMatch(/Index Cond: .*next_at <= /);
  });
});
