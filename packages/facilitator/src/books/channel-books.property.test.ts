import { effort } from "@coinslot/devnet/effort";
import type { ChannelConfig, Hex } from "@coinslot/protocol";
import fc from "fast-check";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import type { ChannelKey } from "../ledger/channels/channel.ts";
import { beginPayouts, postPayouts } from "../ledger/channels/channel-payouts.ts";
import { chargeChannel } from "../ledger/channels/charge-channel.ts";
import { lowerCharge } from "../ledger/channels/end-charge.ts";
import { mirrorChannel } from "../ledger/channels/mirror-channel.ts";
import { openChannel } from "../ledger/channels/open-channel.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { foldCharges } from "../ledger/maintenance/fold-charges.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { engines } from "../testing/settling-devnet.ts";
import type { BookSum } from "./book-entry.ts";
import { createBooksReader } from "./books-reader.ts";
import { readChargesOf } from "./read-charges.ts";

const dayMs = 86_400_000;
const always = { from: 0, before: 8_640_000_000_000_000 };
const routes = ["GET /a", "GET /b"] as const;
const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const place = { network: "eip155:9745", contract: account(0x4020) } as const;
const receiver = account(3);
const token = account(5);
const tokenOf = (index: number) => (index === 1 ? account(6) : token);

interface ChannelModel extends ChannelKey {
  /** `totalClaimed` when the ledger met it. */
  opened: bigint;
  charged: bigint;
  balance: bigint;
  claimed: bigint;
  lost: bigint;
  last: { id: string; base: bigint; amount: bigint; route: string | undefined } | undefined;
  /** Former states of the chain, to which a reorganisation may lead back. */
  former: { balance: bigint; claimed: bigint }[];
}

interface Step {
  kind: string;
  pick: number;
  value: bigint;
}

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom(
      ...["deposit", "deposit", "charge", "charge", "charge", "charge", "lower", "claim", "claim"],
      ...["claim of another ledger", "withdraw", "reorganisation", "payout", "close", "race"],
      ...["fold", "fold", "begin"],
    ),
    pick: fc.nat(11),
    value: fc.bigInt(1n, 1_000n),
  }),
  { minLength: 5, maxLength: 50, size: "max" },
);

/** Plays the life of three channels on one ledger of two processes. */
function createHistory(ledgers: readonly [LedgerContext, LedgerContext], seed: number) {
  const channels: ChannelModel[] = [];
  let block = 1;
  let charges = 0;
  let paidOut = 0n;
  let lastPayout = 0;
  let closedTo = Math.floor(Date.now() / dayMs) * dayMs;
  const digests = new Map<number, { from: number; digest: string }>();
  const ledgerOf = (pick: number) => ledgers[pick % 2 === 0 ? 0 : 1];

  async function open(index: number): Promise<ChannelModel> {
    const known = channels[index];
    if (known !== undefined) return known;
    const opened = BigInt(index) * 100n;
    const key = { ...place, channelId: word(seed * 10 + index) };
    const config: ChannelConfig = {
      ...{ payer: account(1), payerAuthorizer: account(2), receiver, token: tokenOf(index) },
      ...{ receiverAuthorizer: account(4), withdrawDelay: 86_400, salt: word(index) },
    };
    await openChannel(ledgers[0], { ...key, config, totalClaimed: opened });
    const channel: ChannelModel = {
      ...{ ...key, opened, charged: opened, balance: opened, claimed: opened, lost: 0n },
      ...{ last: undefined, former: [] },
    };
    channels[index] = channel;
    return channel;
  }

  async function mirror(channel: ChannelModel, pick: number): Promise<void> {
    block += 1;
    const head = {
      ...{ balance: channel.balance, totalClaimed: channel.claimed, withdrawal: undefined },
      ...{ refundNonce: 0n, block: { number: block, hash: word(block) } },
    };
    const final = pick % 3 === 0 ? head : undefined;
    const parts = {
      ...place,
      channelId: channel.channelId,
      head,
      served: head,
      final,
      maxLead: 10,
    };
    const outcome = await mirrorChannel(ledgerOf(pick), parts);
    if (outcome.outcome !== "written") throw new Error(outcome.outcome);
    channel.lost = channel.charged > channel.balance ? channel.charged - channel.balance : 0n;
    expect(outcome.lost).toBe(channel.lost);
  }

  async function charge(channel: ChannelModel, { pick, value }: Step, isRace: boolean) {
    const { charged: seen, claimed, balance } = channel;
    const base = larger(seen, claimed);
    const ceiling = base + value;
    const route = pick % 3 === 2 ? undefined : routes[pick % 3];
    const bid = (ledger: LedgerContext) => {
      charges += 1;
      return { ledger, id: `charge ${seed} ${charges}` };
    };
    const bids = (isRace ? ledgers : [ledgerOf(pick)]).map(bid);
    const outcomes = await Promise.all(
      bids.map(({ ledger, id }) =>
        chargeChannel(ledger, {
          ...{ ...place, channelId: channel.channelId, id, seen, base, amount: value, ceiling },
          ...{ signature: "0xab", fingerprint: "request", route },
        }),
      ),
    );
    const winner = bids[outcomes.indexOf(true)];
    expect(outcomes.filter(Boolean)).toHaveLength(ceiling <= balance ? 1 : 0);
    if (winner === undefined) return;
    channel.charged = ceiling;
    channel.last = { id: winner.id, base, amount: value, route };
  }

  async function lower(channel: ChannelModel, { value }: Step): Promise<void> {
    const { last } = channel;
    if (last === undefined) return;
    const amount = last.amount - value < 0n ? 0n : last.amount - value;
    const { id, base, route } = last;
    const wish = { ...place, channelId: channel.channelId, id, base, amount, route };
    const isLowered = (await Promise.all(ledgers.map((each) => lowerCharge(each, wish)))).some(
      Boolean,
    );
    if (!isLowered) return;
    channel.charged = base + amount;
    channel.last = amount === 0n ? undefined : { ...last, amount };
  }

  /** Both processes add to the sums, beside a charge. */
  async function fold(channel: ChannelModel, step: Step): Promise<void> {
    const folds = ledgers.map((each) => foldCharges(each, 3));
    await Promise.all([...folds, charge(channel, step, false), compareSums(ledgers[1])]);
  }

  async function payout({ pick, value }: Step): Promise<void> {
    await beginPayouts(ledgers[0], { ...place, block: 0 });
    block += 1;
    const payouts = [0, 1].slice(0, 1 + (pick % 2)).map((logIndex) => ({
      ...{ receiver, token, amount: value, logIndex },
      ...{ transaction: word(seed * 1_000 + block), block: { number: block, hash: word(block) } },
    }));
    const wish = { ...place, after: lastPayout, to: block, payouts };
    const posted = await Promise.all(ledgers.map((each) => postPayouts(each, wish)));
    expect(posted.filter(Boolean)).toHaveLength(1);
    lastPayout = block;
    paidOut += value * BigInt(payouts.length);
  }

  async function close({ pick }: Step): Promise<void> {
    const from = closedTo;
    closedTo += (1 + (pick % 3)) * dayMs;
    const { db } = ledgers[0];
    const period = { closed_to: closedTo, closed_at: 1, digest: null };
    await db.insertInto("book_periods").values(period).execute();
    const range = { from, before: closedTo };
    digests.set(closedTo, { from, digest: await createBooksReader(ledgers[0]).digest(range) });
  }

  async function play(step: Step): Promise<void> {
    const channel = await open(step.pick % 3);
    const { value, pick } = step;
    const { balance, claimed, charged } = channel;
    switch (step.kind) {
      case "charge":
        return charge(channel, step, false);
      case "race":
        return charge(channel, step, true);
      case "lower":
        return lower(channel, step);
      case "payout":
        return payout(step);
      case "fold":
        return fold(channel, step);
      case "begin":
        return forgetSums(ledgers[0]);
      case "close":
        return close(step);
    }
    channel.former.push({ balance, claimed });
    if (step.kind === "deposit") channel.balance += value;
    if (step.kind === "claim")
      channel.claimed = smaller(claimed + value, smaller(charged, balance));
    if (step.kind === "claim of another ledger")
      channel.claimed = smaller(claimed + value, balance);
    if (step.kind === "withdraw") channel.balance = claimed + (balance - claimed) / 2n;
    if (step.kind === "reorganisation")
      Object.assign(channel, channel.former[pick % channel.former.length]);
    if (channel.claimed < claimed && step.kind === "claim") channel.claimed = claimed;
    await mirror(channel, pick);
  }

  /** Balances of the accounts, as this history must have left them. */
  function expected() {
    const sum = (part: (channel: ChannelModel) => bigint) =>
      channels.reduce((total, channel) => total + part(channel), 0n);
    const held = sum(({ balance, claimed }) => balance - claimed);
    return {
      receivable: sum(({ charged, claimed, lost }) => charged - claimed - lost),
      income: -sum(({ charged, opened }) => charged - opened),
      claimed: sum(({ claimed, opened }) => claimed - opened) - paidOut,
      locked: held,
      escrow: -held,
      losses: sum(({ lost }) => lost),
      wallet: paidOut,
    };
  }

  return { play, expected, digests };
}

function larger(first: bigint, second: bigint): bigint {
  return smaller(first, second) === first ? second : first;
}

function smaller(first: bigint, second: bigint): bigint {
  if (first < second) return first;
  return second;
}

/** As after the migration of a ledger that had these charges before. */
async function forgetSums(ledger: LedgerContext): Promise<void> {
  await ledger.write(async (transaction) => {
    for (const table of ["charge_sums", "charge_changes"] as const) {
      await transaction.deleteFrom(table).execute();
    }
    const start = { network: "", contract: "", channel_id: "", day: 0, is_whole: 0 } as const;
    await transaction.updateTable("charge_sums_progress").set(start).execute();
  });
}

/** The sums, whatever is added up, beside those of the rows of all channels. */
function compareSums(ledger: LedgerContext): Promise<void> {
  return inSnapshot(ledger, async (snapshot) => {
    const { amount } = snapshot.dialect;
    const rows = await snapshot.db
      .selectFrom("channel_sums")
      .innerJoin("channel_terms", "channel_terms.channel_id", "channel_sums.channel_id")
      .select(["day", "route_id", "is_reversal", "count", "amount", "token"])
      .execute();
    const sums = new Map<string, { count: number; amount: bigint }>();
    for (const row of rows) {
      const key = `${row.day} ${row.token} ${row.route_id} ${row.is_reversal}`;
      const known = sums.get(key) ?? { count: 0, amount: 0n };
      sums.set(key, {
        count: known.count + Number(amount.decode(row.count)),
        amount: known.amount + amount.decode(row.amount),
      });
    }
    const read = await readChargesOf(snapshot, { day: 0, before: 100_000_000 });
    const found = read.map(({ day, asset, route_id, debit, ...sum }) => [
      `${day} ${asset} ${route_id} ${debit === accounts.income ? 1 : 0}`,
      { count: sum.count, amount: sum.amount },
    ]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(sums));
  });
}

/** Debits less credits, by account; those of channels are there without entries, too. */
async function readBalances(ledger: LedgerContext): Promise<Record<string, bigint>> {
  const names = ["receivable", "income", "claimed", "locked", "escrow", "losses", "wallet"];
  const balances = new Map(names.map((name) => [name, 0n]));
  const add = (name: BookSum["debit"], amount: bigint) =>
    balances.set(name, (balances.get(name) ?? 0n) + amount);
  for await (const page of createBooksReader(ledger).sums(always)) {
    for (const { debit, credit, amount } of page) {
      add(debit, amount);
      add(credit, -amount);
    }
  }
  return Object.fromEntries(balances);
}

describe.each(engines)("channels in the books, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);

  it("have an entry or a sum for each movement of any history", { timeout: 240_000 }, async () => {
    const first = await shared.join("one");
    const second = await shared.join("two");
    let seed = 0;
    const property = fc.asyncProperty(steps, async (history) => {
      seed += 1;
      const tables = [
        ...["channels", "channel_terms", "channel_states", "channel_sums", "channel_dues"],
        ...["charge_sums", "charge_changes"],
        ...["channel_payouts", "channel_payout_progress", "book_entries", "book_periods"],
      ] as const;
      for (const table of tables) await first.db.deleteFrom(table as "channels").execute();
      const { play, expected, digests } = createHistory([first, second], seed);
      for (const step of history) {
        await play(step);
        expect(await readBalances(first)).toEqual(expected());
        await compareSums(first);
      }
      while (await foldCharges(first, 3));
      expect(await shared.read(sql`select * from charge_changes`)).toEqual([]);
      await compareSums(first);
      const reader = createBooksReader(second);
      for (const [before, { from, digest }] of digests) {
        expect(await reader.digest({ from, before })).toBe(digest);
      }
      const faults = [];
      for await (const page of reader.check(always)) faults.push(...page.faults);
      expect(faults).toEqual([]);
    });
    await fc.assert(property, { numRuns: (engine === "sqlite" ? 20 : 6) * effort });
  });
});
