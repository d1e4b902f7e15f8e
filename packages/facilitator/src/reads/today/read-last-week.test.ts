import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { sellForTest } from "../../testing/sold-payments.ts";
import type { SellerView } from "../seller-view.ts";
import { readLastWeek } from "./read-last-week.ts";

const from = Date.UTC(2026, 10, 17);
const seller: SellerView = {
  chains: async () => [],
  relayers: () => [],
  obstacles: () => [],
  disk: async () => undefined,
};

describe.each(engines)("the figures of a week ago, on %s", (engine) => {
  let now = from;
  const { join } = ledgerForEachTest(engine, { now: () => now });

  it("have each payment once, however often a running process reads them", async () => {
    const ledger = await join("one");
    const view = { ...seller };
    for (let minute = 0; minute < 4; minute += 1) {
      now = from + minute * 60_000 + 30_000;
      await sellForTest(ledger, { nonce: minute });
    }
    const at = async (seconds: number, by: SellerView | undefined) =>
      (await readLastWeek(ledger, { from, to: from + seconds * 1_000 }, by)).payments.confirmed;
    expect(await at(60, view)).toBe(1);
    // The end of what is shown moves by a minute.
    expect(await at(119, view)).toBe(1);
    expect(await at(120, view)).toBe(2);
    expect(await at(240, view)).toBe(4);
    for (const seconds of [60, 119, 240]) {
      expect(await at(seconds, undefined)).toBe(Math.floor((seconds + 30) / 60));
    }
  });

  it("read no payment again that a running process has counted", async () => {
    const ledger = await join("one");
    const view = { ...seller };
    now = from;
    await sellForTest(ledger);
    const read = (to: number) => readLastWeek(ledger, { from, to }, view);
    expect((await read(from + 60_000)).income).toMatchObject([{ value: "10" }]);
    await ledger.db.updateTable("payments").set({ state: "failed" }).execute();
    expect((await read(from + 600_000)).income).toMatchObject([{ value: "10" }]);
    // Midnight begins another day.
    const next = { from: from + 86_400_000, to: from + 86_460_000 };
    expect((await readLastWeek(ledger, next, view)).income).toEqual([]);
  });
});
