import { describe, expect, it } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { inclusion, network, queue } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { closePeriod } from "./close-period.ts";

describe.each(engines)("closing a period on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);
  const block = { number: inclusion.blockNumber, hash: inclusion.blockHash };
  const readTimes = async ({ db }: LedgerContext) =>
    (await db.selectFrom("book_entries").select("posted_at").orderBy("id").execute()).map(
      ({ posted_at }) => posted_at,
    );

  it("is refused by the names of what is not final, and before the end of the period", async () => {
    const ledger = await join("one");
    const id = await queue(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const [postedAt = 0] = await readTimes(ledger);
    const until = postedAt + 1;
    await expect(closePeriod(ledger, { until })).rejects.toThrow(`payment ${id}`);
    // It was posted later than this period.
    expect(await closePeriod(ledger, { until: postedAt })).toMatchObject({ isNew: true });
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await expect(closePeriod(ledger, { until: Date.now() + 86_400_000 })).rejects.toThrow(
      "is not over yet",
    );
    expect(await closePeriod(ledger, { until })).toEqual({ closedTo: until, isNew: true });
    expect(await closePeriod(ledger, { until })).toEqual({ closedTo: until, isNew: false });
    await expect(closePeriod(ledger, { until: postedAt })).rejects.toThrow("are closed up to");
  });

  it("is refused while payments from before the books are not posted", async () => {
    const ledger = await join("one");
    await ledger.db.updateTable("book_progress").set({ last_id: "f" }).execute();
    await expect(closePeriod(ledger, { until: 1 })).rejects.toThrow("still being posted");
  });

  it("races with postings: each is before its end, or in the open period", async () => {
    const ledger = await join("one");
    for (let round = 0; round < 5; round += 1) {
      const ids = await Promise.all(Array.from({ length: 8 }, () => queue(ledger)));
      const posting = ids.map((id) =>
        recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]),
      );
      const before = await readTimes(ledger);
      // With everything posted so far in it, up to this moment: it is not final, or not in it.
      const until = Date.now() - 1;
      const closing = closePeriod(ledger, { until }).catch((error: Error) => error);
      const [closed] = await Promise.all([closing, ...posting]);
      const times = (await readTimes(ledger)).slice(before.length);
      if (!(closed instanceof Error)) {
        for (const time of times) expect(time).toBeGreaterThanOrEqual(until);
      } else expect(closed.message).toMatch(/Not final yet|are closed up to/);
      await finaliseBlocks(ledger, { network, blocks: [block] });
    }
    const [last = 0] = (await readTimes(ledger)).slice(-1);
    await closePeriod(ledger, { until: last + 1 });
    const late = await queue(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [late], inclusion } }]);
    await undoBlocks(ledger, { network, blocks: [block] });
    for (const time of (await readTimes(ledger)).slice(-2)) expect(time).toBeGreaterThan(last);
  });
});
