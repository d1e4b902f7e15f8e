import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { forgetEvents } from "../store/events.ts";
import { engines } from "../testing/engines.ts";
import { openIndex, other, stranger, watched } from "../testing/index-by-hand.ts";
import { tellEvents } from "./tell-events.ts";
import { forgetReverted, forgetUnsent } from "./told-transfers.ts";
import { changeWatched } from "./watched-addresses.ts";

describe.each(engines)("events of transfers on $engine", ({ createUrl }) => {
  it("is their own addresses alone, each transfer once, by sender or recipient", async () => {
    const index = await openIndex(await createUrl());
    await index.watch("whk_a", [watched, other]);
    await index.watch("whk_b", [other]);
    await index.include(1, "1", [
      { transaction: "a" },
      { transaction: "b", from: watched, to: other, log: 1 },
      { transaction: "c", to: stranger, log: 2 },
      { transaction: "d", from: watched, to: watched, log: 3 },
    ]);
    expect(await index.eventsOf()).toEqual(["included a 1", "included b 1", "included d 1"]);
    expect(await index.eventsOf("whk_b")).toEqual(["included b 1"]);
  });

  it("is final only where its block is verified, final and not doubted", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.include(2, "2", [{ transaction: "b" }]);
    await index.finalise(2);
    expect(await index.eventsOf()).toHaveLength(2);
    await index.doubt(2);
    await index.verify(1);
    await index.verify(2);
    expect((await index.eventsOf()).slice(2)).toEqual(["final a 1"]);
    await index.doubt(null);
    await index.finalise(2);
    expect((await index.eventsOf()).slice(2)).toEqual(["final a 1", "final b 2"]);
  });

  it("is reverted with its block, also a final one, and included again in the next", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.verify(1);
    await index.finalise(1);
    await index.rollBackTo(0);
    await index.include(1, "other", [{ transaction: "a" }]);
    expect(await index.eventsOf()).toEqual([
      "included a 1",
      "final a 1",
      "reverted a 1",
      "included a other",
    ]);
  });

  it("follows a repair of a block", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    await index.mend(1, "1", [
      { transaction: "b", log: 1 },
      { transaction: "c", log: 2 },
    ]);
    await index.verify(1);
    await index.finalise(1);
    const events = await index.eventsOf();
    expect(events.filter((each) => each.includes(" a "))).toEqual(["included a 1", "reverted a 1"]);
    expect(events.filter((each) => each.includes(" c "))).toEqual(["included c 1", "final c 1"]);
    expect(events.filter((each) => each.includes(" b ")).at(-1)).toBe("final b 1");
  });

  it("is not reverted by a repair that leaves it as it is", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    const told = [{ transaction: "a" }, { transaction: "b", log: 1 }];
    await index.include(1, "1", told);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    await index.mend(1, "1", [...told, { transaction: "c", log: 2 }]);
    await index.mend(1, "1", told.slice(0, 1));
    await index.verify(1);
    await index.finalise(1);
    expect(await index.eventsOf()).toEqual([
      "included a 1",
      "included b 1",
      "reverted b 1",
      "final a 1",
    ]);
  });

  it.each(["mend", "reindex"] as const)(
    "is included again after a %s that moves it, although its address is not watched any more",
    async (kind) => {
      const index = await openIndex(await createUrl());
      await index.watch();
      await index.include(1, "false", [{ transaction: "a" }]);
      await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
      const truth = [
        { transaction: "a", log: 1 },
        { transaction: "b", log: 2 },
      ];
      if (kind === "mend") await index.mend(1, "1", truth);
      else {
        await index.forget(1);
        await index.include(1, "1", truth, false);
      }
      await index.verify(1);
      await index.finalise(1);
      expect(await index.eventsOf()).toEqual([
        "included a false",
        "reverted a false",
        "included a 1",
        "final a 1",
      ]);
    },
  );

  it("is not repeated by a reindex, and is taken back where that has not found it again", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    await index.forget(1);
    await index.finalise(1);
    expect(await index.eventsOf()).toEqual(["included a 1", "included b 1"]);
    await index.include(1, "1", [{ transaction: "b", log: 1 }], false);
    await index.verify(1);
    expect((await index.eventsOf()).slice(2).sort()).toEqual(["final b 1", "reverted a 1"]);
  });

  it("is reverted and included again where a reindex has found another amount or recipient", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [
      { transaction: "a", amount: 7n },
      { transaction: "b", log: 1 },
      { transaction: "c", log: 2 },
    ]);
    await index.finalise(1);
    await index.forget(1);
    const found = [
      { transaction: "a", amount: 5n },
      { transaction: "b", log: 1, to: stranger },
      { transaction: "c", log: 2 },
    ];
    await index.include(1, "1", found, false);
    await index.verify(1);
    const events = await index.eventsOf("whk_a", { hasAmount: true });
    expect(events.slice(3).filter((each) => each.includes(" a "))).toEqual([
      "reverted a 1 7",
      "included a 1 5",
      "final a 1 5",
    ]);
    expect(events.slice(3).filter((each) => each.includes(" b "))).toEqual(["reverted b 1 5"]);
    expect(events.slice(3).filter((each) => each.includes(" c "))).toEqual(["final c 1 5"]);
    await index.finalise(1);
    expect(await index.eventsOf()).toHaveLength(events.length);
  });

  it("is reverted although it was final, where a reindex has not found it again, or otherwise", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    const told = ["a", "b", "c"].map((transaction, log) => ({ transaction, log }));
    await index.include(1, "1", told);
    await index.finalise(1);
    await index.verify(1);
    expect(await index.eventsOf()).toHaveLength(6);
    await index.forget(1);
    const found = [
      { transaction: "a", log: 0 },
      { transaction: "b", log: 1, amount: 7n },
    ];
    await index.include(1, "1", found, false);
    await index.verify(1);
    const events = (await index.eventsOf("whk_a", { hasAmount: true })).slice(6);
    expect(events.filter((each) => !each.includes(" c "))).toEqual([
      "reverted b 1 5",
      "included b 1 7",
      "final b 1 7",
    ]);
    expect(events.filter((each) => each.includes(" c "))).toEqual(["reverted c 1 5"]);
  });

  it.each([
    ["log", "1", 4],
    ["block", "false", 0],
  ])("is included again where its first reading named another %s", async (_, block, log) => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, block, [
      { transaction: "a", log },
      { transaction: "a", log: 2 },
    ]);
    await index.finalise(1);
    await index.forget(1);
    const found = [{ transaction: "a" }, { transaction: "a", log: 2 }];
    await index.include(1, "1", found, false);
    await index.verify(1);
    const events = (await index.eventsOf("whk_a", { hasKey: true })).slice(2);
    // One key for each transfer, by its place among those of its transaction.
    for (const event of [`reverted a ${block}`, "included a 1", "final a 1"]) {
      const keys = events.filter((each) => each.startsWith(event)).map((each) => each.at(-1));
      expect(keys.sort()).toEqual(["0", "1"]);
    }
  });

  it("is included again where a later reindex finds all that an earlier one has missed", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    const told = [{ transaction: "a" }, { transaction: "a", log: 1 }, { transaction: "b", log: 2 }];
    await index.include(1, "1", told);
    await index.finalise(1);
    await index.verify(1);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    for (const found of [told.slice(0, 1), told]) {
      await index.forget(1);
      await index.include(1, "1", found, false);
      await index.verify(1);
    }
    const events = (await index.eventsOf("whk_a", { hasKey: true })).slice(3);
    for (const [transaction, place] of [
      ["a", "1"],
      ["b", "0"],
    ] as const) {
      const ofPlace = events.filter(
        (each) => each.includes(` ${transaction} `) && each.endsWith(`:${place}`),
      );
      expect(ofPlace.map((each) => each.split(" ")[0])).toEqual([
        "final",
        "reverted",
        "included",
        "final",
      ]);
    }
  });

  it("is included again where a repair takes it from one block, and another had it before", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "false", [{ transaction: "a" }]);
    await index.include(2, "2", [{ transaction: "a" }], false);
    await index.finalise(2);
    await index.verify(2);
    await index.mend(1, "1", []);
    await index.verify(1);
    expect(await index.eventsOf()).toEqual([
      "included a false",
      "reverted a false",
      "included a 2",
      "final a 2",
    ]);
  });

  it("is included again where another of its transaction is final, and it was missed", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    const both = [{ transaction: "a" }, { transaction: "a", log: 1 }];
    await index.include(1, "1", [{ transaction: "z" }]);
    await index.include(2, "2", both);
    await index.rollBackTo(1);
    await index.include(2, "3", both.slice(0, 1));
    await index.finalise(2);
    await index.verify(2);
    await index.forget(2);
    await index.include(2, "3", both, false);
    await index.verify(2);
    const events = await index.eventsOf("whk_a", { hasKey: true });
    const ofSecond = events.filter((each) => each.includes(" a ") && each.endsWith(":1"));
    expect(ofSecond.map((each) => each.split(" ")[0])).toEqual([
      "included",
      "reverted",
      "included",
      "final",
    ]);
  });

  it("begins with the first block after an address is watched, and ends with what was sent", async () => {
    const index = await openIndex(await createUrl());
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.watch();
    await index.include(2, "2", [{ transaction: "b" }]);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    await index.include(3, "3", [{ transaction: "c" }]);
    await index.rollBackTo(1);
    expect(await index.eventsOf()).toEqual(["included b 2", "reverted b 2"]);
    // Watched anew: what came in between is not sent.
    await index.include(2, "4", [{ transaction: "d" }]);
    await index.watch();
    await index.include(3, "5", [{ transaction: "e" }]);
    expect((await index.eventsOf()).slice(2)).toEqual(["included e 5"]);
  });

  it("is sent where an ordinary reorganisation moves it, although it came before its address was watched", async () => {
    const index = await openIndex(await createUrl());
    await index.watch("whk_b");
    await index.include(1, "1", [{ transaction: "z", to: other }]);
    await index.finalise(1);
    await index.include(2, "2", [{ transaction: "a" }]);
    // Read without events, as for a token that is added.
    await index.include(3, "3", [{ transaction: "b" }], false);
    await index.watch();
    await index.rollBackTo(1);
    await index.include(2, "4", []);
    await index.include(3, "5", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    await index.verify(3);
    await index.finalise(3);
    const events = ["included a 5", "included b 5", "final a 5", "final b 5"];
    expect(await index.eventsOf()).toEqual(events);
    expect(await index.eventsOf("whk_b")).toEqual(["included a 2", "reverted a 2", ...events]);
  });

  it("is not sent after a rewind where it is from before its address was watched", async () => {
    const index = await openIndex(await createUrl());
    const old = [{ transaction: "a" }, { transaction: "a", log: 1 }];
    await index.include(1, "1", old);
    await index.watch();
    await index.watch("whk_b");
    await index.include(2, "2", [{ transaction: "b" }]);
    await index.finalise(2);
    await index.rollBackTo(0);
    // Watched while its transfers are not indexed: these are new to it.
    await index.watch("whk_a", [other]);
    await index.include(1, "3", [
      { transaction: "n" },
      ...old.map((each, log) => ({ ...each, log: log + 1 })),
      { transaction: "o", to: other, log: 3 },
    ]);
    await index.rollBackTo(0);
    await index.include(1, "4", [{ transaction: "n" }]);
    await index.include(2, "5", [{ transaction: "b" }, { transaction: "a", log: 1 }]);
    const ofBoth = [
      "included b 2",
      "reverted b 2",
      "included n 3",
      "reverted n 3",
      "included n 4",
      "included b 5",
    ];
    expect(await index.eventsOf("whk_b")).toEqual(ofBoth);
    const ofOther = ["included o 3", "reverted o 3"];
    const events = await index.eventsOf();
    expect(events.filter((each) => !each.includes(" o "))).toEqual(ofBoth);
    expect(events.filter((each) => each.includes(" o "))).toEqual(ofOther);
  });

  it("names only addresses that were watched before it, after a rewind, too", async () => {
    const index = await openIndex(await createUrl());
    await index.watch("whk_a", [other]);
    await index.include(1, "1", [{ transaction: "a", from: other }]);
    await index.watch();
    await index.finalise(1);
    await index.rollBackTo(0);
    await index.include(1, "2", [{ transaction: "a", from: other }]);
    const { rows } = await sql<{ payload: string }>`
      select payload from indexer_outbox_events order by seq
    `.execute(index.database.kysely);
    const addresses = rows.map(({ payload }) => JSON.parse(payload).addresses);
    expect(addresses).toEqual([[other], [other], [other]]);
  });

  it("is not sent after a rewind where a reindex or an added token has read it", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }], false);
    await index.include(2, "2", [{ transaction: "b" }]);
    await index.finalise(2);
    await index.rollBackTo(0);
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.include(2, "2", [{ transaction: "b" }]);
    expect(await index.eventsOf()).toEqual(["included b 2", "reverted b 2", "included b 2"]);
  });

  it("is not sent by a repair of its block where it is from before its address was watched", async () => {
    const index = await openIndex(await createUrl());
    await index.include(1, "false", [{ transaction: "a" }]);
    await index.watch();
    await index.finalise(1);
    await index.mend(1, "1", [{ transaction: "a" }, { transaction: "b", log: 1 }]);
    expect(await index.eventsOf()).toEqual(["included b 1"]);
  });

  it("is sent where it comes long after the rewind", async () => {
    const index = await openIndex(await createUrl());
    const { database } = index;
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.watch();
    await index.finalise(1);
    await index.rollBackTo(0);
    const forget = () =>
      database.transaction((tx) => forgetUnsent(tx, database.dialect, { keptMs: -1, limit: 1 }));
    expect([await forget(), await forget()]).toEqual([true, false]);
    await index.include(1, "2", [{ transaction: "a" }]);
    expect(await index.eventsOf()).toEqual(["included a 2"]);
  });

  it("is included again by the next blocks, although its address is not watched any more", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.include(2, "2", [{ transaction: "b" }]);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    await index.rollBackTo(1);
    await index.include(2, "3", [{ transaction: "c" }]);
    await index.include(3, "4", [{ transaction: "d" }, { transaction: "b", log: 1 }]);
    await index.rollBackTo(0);
    await index.include(1, "5", [{ transaction: "b" }, { transaction: "a", log: 1 }]);
    expect((await index.eventsOf()).slice(2)).toEqual([
      "reverted b 2",
      "included b 4",
      "reverted b 4",
      "reverted a 1",
      "included b 5",
      "included a 5",
    ]);
    const { database } = index;
    const forget = () =>
      database.transaction((tx) => forgetReverted(tx, database.dialect, { keptMs: -1, limit: 1 }));
    expect([await forget(), await forget(), await forget()]).toEqual([true, true, false]);
  });

  it("includes the blocks of a writer of the release before, once one of this release writes", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    // That writer knows of no receivers: its events alone are written.
    const { database } = index;
    await sql`
      insert into indexer_events (kind, token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms)
      select 'retraction', token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms
      from indexer_events
    `.execute(database.kysely);
    expect(await index.eventsOf()).toEqual(["included a 1"]);
    await database.transaction((tx) => tellEvents(tx, database.dialect));
    expect(await index.eventsOf()).toEqual(["included a 1", "reverted a 1"]);
    await database.transaction((tx) => forgetEvents(tx, database.dialect));
    await index.include(2, "2", [{ transaction: "b" }]);
    expect((await index.eventsOf()).slice(2)).toEqual(["included b 2"]);
  });

  it("is not sent from before its address was watched, by the events of the release before", async () => {
    const index = await openIndex(await createUrl());
    await index.watch("whk_b");
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.watch();
    await index.finalise(1);
    const { database } = index;
    for (const kind of ["retraction", "transfer"])
      await sql`
        insert into indexer_events (kind, token_id, position, transaction_index, transfer_index,
          transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms)
        select ${kind}, token_id, position, transaction_index, transfer_index,
          transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms
        from indexer_events where id = 1
      `.execute(database.kysely);
    await database.transaction((tx) => tellEvents(tx, database.dialect));
    expect(await index.eventsOf()).toEqual([]);
    expect(await index.eventsOf("whk_b")).toEqual(["included a 1", "reverted a 1", "included a 1"]);
  });

  it("is included again by a writer of the release before, also where an address is watched meanwhile", async () => {
    const index = await openIndex(await createUrl());
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await changeWatched(index.outbox, { endpoint: "whk_a", remove: [watched] });
    await index.rollBackTo(0);
    const { database } = index;
    await sql`
      insert into indexer_events (kind, token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms)
      select 'transfer', token_id, position, transaction_index, transfer_index,
        transaction_hash, from_address, to_address, amount, block_hash, timestamp_ms
      from indexer_events where kind = 'transfer'
    `.execute(database.kysely);
    await index.watch("whk_a", [other]);
    await database.transaction((tx) => tellEvents(tx, database.dialect));
    expect((await index.eventsOf()).slice(2)).toEqual(["included a 1"]);
  });

  it("leaves out types that a receiver does not want", async () => {
    const index = await openIndex(await createUrl(), { types: ["transfer.final"] });
    await index.watch();
    await index.include(1, "1", [{ transaction: "a" }]);
    await index.verify(1);
    await index.finalise(1);
    expect(await index.eventsOf()).toEqual(["final a 1"]);
  });
});
