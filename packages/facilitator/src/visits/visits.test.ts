import { createVisitBoard } from "@coinslot/protocol";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { createManualClock } from "../../../chain/src/testing/manual-clock.ts";
import { keepVisitsDays, retentionSteps } from "../ledger/maintenance/retention-steps.ts";
import { storeVisits } from "../ledger/maintenance/store-visits.ts";
import { readCommonTime } from "../ledger/queries/common-time.ts";
import { sumVisits, visitGroups } from "../ledger/queries/sum-visits.ts";
import { silentLogger } from "../logger.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { engines } from "../testing/settling-devnet.ts";
import { startVisits, visitsFlushMs } from "./start-visits.ts";

const dayMs = 86_400_000;
const networks = new Set(["eip155:9745"]);
const by = visitGroups;

describe("a board of visits", () => {
  it("counts by route and reason, by network and token where they are served", () => {
    const board = createVisitBoard({ networks });
    const ours = { route: "GET /a", reason: "offered" } as const;
    board.count(ours);
    board.count(ours);
    board.count({ ...ours, network: "eip155:9745", asset: "0xaa" });
    board.count({ ...ours, network: "eip155:1" });
    expect(board.tallies()).toMatchObject([
      { ...ours, network: "", asset: "", total: 3 },
      { ...ours, network: "eip155:9745", asset: "0xaa", total: 1 },
    ]);
  });

  it("holds a bounded number of kinds, and counts all others by their reason", () => {
    const board = createVisitBoard({ networks, max: 100 });
    for (let index = 0; index < 10_000; index += 1) {
      board.count({ route: `GET /${index}`, reason: index % 2 ? "offered" : "overloaded" });
    }
    expect(board.tallies()).toHaveLength(102);
    const rest = board.tallies().filter(({ route }) => route === "");
    expect(rest.map(({ total }) => total)).toEqual([4_950, 4_950]);
  });

  it("notifies once of something to store, at once if it is there already", () => {
    const board = createVisitBoard({ networks });
    let notified = 0;
    const listen = () => board.whenCounted(() => (notified += 1));
    listen();
    expect(notified).toBe(0);
    board.count({ route: "GET /a", reason: "offered" });
    board.count({ route: "GET /a", reason: "offered" });
    expect(notified).toBe(1);
    listen();
    expect(notified).toBe(2);
  });
});

describe.each(engines)("visits in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  const countRows = async () =>
    z
      .array(z.object({ count: z.coerce.number() }))
      .parse(await shared.read(sql`select count(*) as count from visits`))[0]?.count;

  it("are added by each process to rows of its own, and summed when read", async () => {
    const [one, other] = [await shared.join("one"), await shared.join("other")];
    const boards = [createVisitBoard({ networks }), createVisitBoard({ networks })] as const;
    for (const board of boards) board.count({ route: "GET /a", reason: "offered" });
    await storeVisits(one, boards[0].tallies());
    await storeVisits(other, boards[1].tallies());
    boards[0].count({ route: "GET /a", reason: "offered" });
    boards[0].count({ route: "GET /a", reason: "overloaded" });
    await storeVisits(one, boards[0].tallies());
    await storeVisits(one, boards[0].tallies());
    const day = Math.floor(one.now() / dayMs);
    expect(await sumVisits(one, { by: ["day", "reason"], limit: 10 })).toEqual([
      { day, reason: "offered", count: 3 },
      { day, reason: "overloaded", count: 1 },
    ]);
    expect(await countRows()).toBe(3);
    expect(await sumVisits(one, { by: [], beforeDay: day, limit: 10 })).toEqual([{ count: 0 }]);
  });

  it("stay on the board where they cannot be stored, and are not lost", async () => {
    const ledger = await shared.join("one");
    const board = createVisitBoard({ networks });
    board.count({ route: "GET /a", reason: "offered" });
    const away = { ...ledger, write: () => Promise.reject(new Error("away")) };
    await expect(storeVisits(away, board.tallies())).rejects.toThrow("away");
    await storeVisits(ledger, board.tallies());
    expect(await sumVisits(ledger, { by: [], limit: 1 })).toEqual([{ count: 1 }]);
  });

  it("cost one transaction ten seconds after the first, however many, and nothing at rest", async () => {
    const ledger = await shared.join("one");
    let writes = 0;
    const write: typeof ledger.write = (...work) => {
      writes += 1;
      return ledger.write(...work);
    };
    const timers = createManualClock();
    let armed = 0;
    const clock = {
      ...timers,
      setTimer(run: () => void, ms: number) {
        armed += 1;
        return timers.setTimer(run, ms);
      },
    };
    const board = createVisitBoard({ networks });
    const visits = startVisits(
      { ledger: { ...ledger, write }, clock, logger: silentLogger },
      board,
    );
    timers.advance(visitsFlushMs * 100);
    expect([armed, writes]).toEqual([0, 0]);
    for (let index = 0; index < 100_000; index += 1) {
      board.count({ route: "GET /a", reason: index % 2 ? "offered" : "invalid_payload" });
    }
    expect([armed, writes]).toEqual([1, 0]);
    timers.advance(visitsFlushMs);
    await visits.stop();
    timers.advance(visitsFlushMs * 100);
    expect([armed, writes]).toEqual([1, 1]);
    expect(await sumVisits(ledger, { by: [], limit: 1 })).toEqual([{ count: 100_000 }]);
  });

  it("visits of the past become one row for all processes, and end after their time", async () => {
    const [one, other] = [await shared.join("one"), await shared.join("other")];
    const today = Math.floor((await readCommonTime(one)) / dayMs);
    const row = { route: "GET /a", reason: "offered", network: "", asset: "", count: 2 };
    const days = [today, today - 2, today - keepVisitsDays - 1];
    for (const { processId } of [one, other]) {
      await one.write((transaction) =>
        transaction
          .insertInto("visits")
          .values(days.map((day) => ({ ...row, day, process_id: processId })))
          .execute(),
      );
    }
    const prune = async () => {
      const times = { keepSignaturesMs: dayMs, keepUndeliveredMs: dayMs };
      for (const step of retentionSteps(one, { ...times, keepPaymentsMs: undefined })) {
        while ((await step()) === "again");
      }
    };
    await prune();
    const kept = [
      { day: today - 2, count: 4 },
      { day: today, count: 4 },
    ];
    expect(await sumVisits(one, { by: ["day"], limit: 10 })).toEqual(kept);
    expect(await countRows()).toBe(3);
    // A process that was frozen meanwhile adds to its own row, and loses nothing.
    await one.write((transaction) =>
      transaction
        .insertInto("visits")
        .values({ ...row, day: today - 2, process_id: "one" })
        .execute(),
    );
    await prune();
    expect(await sumVisits(one, { by: ["day"], limit: 10 })).toEqual([
      { day: today - 2, count: 6 },
      { day: today, count: 4 },
    ]);
    expect(await countRows()).toBe(3);
  });

  it("visits of a route with a name that no index can hold are stored under its beginning", async () => {
    const ledger = await shared.join("one");
    const board = createVisitBoard({ networks });
    for (const end of ["x", "y", "\0"]) {
      board.count({ route: `GET /${"é".repeat(5_000)}${end}`, reason: "offered" });
    }
    await storeVisits(ledger, board.tallies());
    const [sum] = await sumVisits(ledger, { by, limit: 10 });
    expect(sum).toMatchObject({ count: 3 });
    expect(sum?.route).toHaveLength(500);
  });
});
