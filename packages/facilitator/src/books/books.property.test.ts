import { writeSync } from "node:fs";
import { effort, seed as firstSeed, isWhole } from "@coinslot/devnet/effort";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { type BookEvent, type BookWorld, bookWorlds } from "../testing/book-events.ts";
import { createHistories, type Histories, playTurns } from "../testing/book-history.ts";
import {
  clearLedger,
  createBookModel,
  readEntryTexts,
  readGroups,
  readMoved,
} from "../testing/book-model.ts";
import { playShared } from "../testing/book-shared-events.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createBooksReader } from "./books-reader.ts";
import { postEarlier } from "./post-earlier.ts";

const always = { from: 0, before: 8_640_000_000_000_000 };

/**
 * Histories that share a ledger, at most: each reading of it and each comparison serves all of
 * them.
 */
const together = isWhole ? 128 : 24;
const worldsOfBatch = isWhole ? 8 : 2;

describe.each(engines)("the books on %s", (engine) => {
  const shared = ledgerForEachTest(engine, { releaseLimit: { count: 1e6, windowMs: 1 } });

  it("have an entry for each movement of any history, on a ledger of any age", {
    timeout: isWhole ? 86_400_000 : 240_000,
  }, async () => {
    const ledger = await shared.join("one");
    const other = await shared.join("two");
    // Longer than any run: without it, no transaction would be stored.
    const lease = await ledger.leases.acquire({ name: "relayer", owner: "one", ttlMs: 86_400_000 });
    if (lease === undefined) throw new Error("The lease is taken");
    // A whole run prints the seed of each batch. A failure prints the shortest histories that fail.
    const total = isWhole ? 100 * effort : engine === "sqlite" ? 100 : 20;
    const seen = new Set<string>();
    let played = 0;
    for (let seed = firstSeed % 2 ** 31; played < total; seed = (seed + 1) % 2 ** 31) {
      const property = fc.asyncProperty(bookWorlds(together), async (world) => {
        await clearLedger(ledger);
        // Retention goes by the earlier one of two clocks.
        shared.wait(Date.now() - ledger.now());
        const count = world.histories.length;
        const histories = createHistories({ ledger, other, lease, count });
        await playAndCompare({ histories, world, wait: shared.wait, seen });
        played += count;
      });
      await fc.assert(property, { seed, numRuns: worldsOfBatch });
      // The test runner keeps what is written by the usual way until the end.
      if (isWhole) writeSync(2, `${engine}: ${played} histories, seed ${seed}\n`);
    }
    // A run that never met a reversal of gas, say, would prove nothing about it.
    if (played >= 1_000) expect([...seen].sort()).toEqual(everyKind);
  });
});

const { wallet, income, refunds, float, gas, relayers, losses } = accounts;
/** Debit and credit of each kind of movement, and of its reversal. */
const everyKind = [
  ...[`${wallet} ${income}`, `${refunds} ${float}`, `${gas} ${relayers}`, `${losses} ${income}`],
  ...[`${income} ${wallet}`, `${float} ${refunds}`, `${relayers} ${gas}`, `${income} ${losses}`],
].sort();

interface Life {
  histories: Histories;
  world: BookWorld;
  wait: (ms: number) => void;
  /** Accounts of the entries that were met. */
  seen: Set<string>;
}

async function playAndCompare(life: Life): Promise<void> {
  const { histories, world, wait, seen } = life;
  const { ledger, all } = histories;
  const model = createBookModel(ledger);
  /** Digests of closed periods: their entries may become sums, and nothing else. */
  const digests = new Map<number, string>();
  let before = await readMoved(ledger);
  const change = async (options?: { isForgotten: boolean }) => {
    const after = await readMoved(ledger);
    model.change(before, after, options);
    before = after;
  };
  const share = async (event: BookEvent) => {
    await playShared(histories, event, wait);
    if (event.kind === "begin") {
      before = await readMoved(ledger);
      model.begin(before);
      digests.clear();
      return;
    }
    await change({ isForgotten: event.kind === "retire" || event.kind.startsWith("forget") });
    if (event.kind === "close the books") await keepDigest(ledger, digests);
  };
  const events = Math.max(...world.histories.map(({ length }) => length));
  for (let at = 0; at < events; at++) {
    for (const { event } of world.shared.filter((each) => each.at === at)) await share(event);
    // One event of each history: no movement changes twice before the next reading.
    await playTurns(
      histories,
      all.flatMap((history, index) => {
        const event = world.histories[index]?.[at];
        return event === undefined ? [] : [{ history, event }];
      }),
    );
    await change();
  }
  // A movement is posted at once, whatever is left to post of earlier ones.
  if (await isWithoutSums(ledger)) {
    expect(lacking(await readEntryTexts(ledger), model.changes())).toEqual([]);
  }
  while (await postEarlier(ledger, 2 * all.length));
  expect(await readGroups(ledger)).toEqual(model.groups());
  for (const each of model.met) seen.add(each);
  if (await isWithoutSums(ledger)) {
    expect(await readEntryTexts(ledger)).toEqual(model.all());
    for (const [closedTo, digest] of digests) {
      const range = { from: 0, before: closedTo };
      expect(await createBooksReader(ledger).digest(range)).toBe(digest);
    }
  }
  const faults = [];
  for await (const page of createBooksReader(ledger).check(always)) faults.push(...page.faults);
  // Those of the previous release, until a pass of retention.
  expect(faults.filter(({ fault }) => fault !== "unknown_source")).toEqual([]);
}

/** Texts that are wanted more often than they are there. */
function lacking(found: readonly string[], wanted: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const text of found) left.set(text, (left.get(text) ?? 0) + 1);
  return wanted.filter((text) => {
    const count = left.get(text) ?? 0;
    left.set(text, count - 1);
    return count <= 0;
  });
}

async function keepDigest(ledger: LedgerContext, digests: Map<number, string>): Promise<void> {
  const [period] = (await createBooksReader(ledger).status()).periods;
  if (period === undefined || digests.has(period.closedTo)) return;
  const range = { from: 0, before: period.closedTo };
  digests.set(period.closedTo, await createBooksReader(ledger).digest(range));
}

async function isWithoutSums({ db }: LedgerContext): Promise<boolean> {
  return (await db.selectFrom("book_sums").select("day").execute()).length === 0;
}
