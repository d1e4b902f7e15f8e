import { once } from "node:events";
import { systemClock } from "@coinslot/chain";
import { devSeedPhrase, withDatabase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { openDatabase } from "@coinslot/storage";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { startCountingProxy } from "../../testing/counting-proxy.ts";
import { devRelayer, reserve, settle } from "../../testing/settling-actions.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);
let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** No sweep, and no poll of an outcome, within a test. */
const noSweeps = { sweepMs: 600_000 };

async function begin() {
  const here = await startSettlingDevnet("postgres");
  settling = here;

  /** Starts a process with this many relayers of the common seed phrase. */
  async function join(
    relayers: number,
    options: Parameters<SettlingDevnet["start"]>[0] = {},
  ): Promise<CoinslotFacilitator> {
    return here.start({
      ...options,
      network: {
        relayer: { seedPhrase: devSeedPhrase, accountIndex: 1, addressCount: relayers },
        ...options.network,
      },
    });
  }

  /** Owners of the relayers' leases that are held. */
  async function owners(): Promise<string[]> {
    const rows = await withDatabase(here.ledger.url, ({ read }) =>
      read(`
        select owner from coinslot_leases where name like 'relayer:%'
        and expires_at_ms > extract(epoch from clock_timestamp()) * 1000 order by owner
      `),
    );
    return rows.map(({ owner }) => String(owner));
  }

  /** Number of relayers of each process that has some, the smallest first. */
  async function shares(): Promise<number[]> {
    const counts = new Map<string, number>();
    for (const owner of await owners()) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    return [...counts.values()].sort();
  }

  /** Number of times that each relayer was taken, the smallest first. */
  async function epochs(): Promise<number[]> {
    const rows = await withDatabase(here.ledger.url, ({ read }) =>
      read("select epoch from coinslot_leases where name like 'relayer:%' order by epoch"),
    );
    return rows.map(({ epoch }) => Number(epoch));
  }

  async function untilShared(expected: readonly number[], timeout = 20_000): Promise<void> {
    await vi.waitFor(async () => expect(await shares()).toEqual(expected), {
      timeout,
      interval: 20,
    });
  }

  /** Relayers that have carried payments, each as often as it did. */
  async function carriers(): Promise<string[]> {
    const rows = await withDatabase(here.ledger.url, ({ read }) =>
      read(`
        select t.relayer from payments p join transactions t on t.id = p.transaction_id
        order by p.created_at
      `),
    );
    return rows.map(({ relayer }) => String(relayer));
  }

  /** Messages between processes from now on, by the beginnings of their channels. */
  async function listenTo(...channels: string[]): Promise<string[]> {
    const database = await openDatabase({ url: here.ledger.url });
    onTestFinished(() => database.close());
    const ids = (await owners()).map((owner) => owner);
    const heard: string[] = [];
    for (const channel of channels) {
      for (const name of [channel, ...ids.map((id) => `${channel}_${id}`)]) {
        await database.listen(name, () => heard.push(name));
      }
    }
    return heard;
  }

  return { ...here, join, owners, epochs, untilShared, carriers, listenTo };
}

describe("processes that share relayers, on PostgreSQL", () => {
  it("hold one each of as many, also where a process joins late", async () => {
    const { join, untilShared } = await begin();
    await join(4);
    await untilShared([4]);
    await Promise.all([join(4), join(4)]);
    await untilShared([1, 1, 2]);
    await join(4);
    await untilShared([1, 1, 1, 1]);
    await join(4);
    await untilShared([1, 1, 1, 1]);
  });

  it("give back no more relayers than a process that joins is to have", async () => {
    const { join, untilShared, epochs } = await begin();
    await join(4);
    await untilShared([4]);
    await join(4);
    await untilShared([2, 2]);
    // Two of them were taken a second time, and two were never given back.
    expect(await epochs()).toEqual([1, 1, 2, 2]);
  });

  it("take the relayers of a process that stops long before its lease would end", async () => {
    const { join, untilShared } = await begin();
    const times = { leaseMs: 60_000 };
    const leaving = await join(3, { times });
    await untilShared([3]);
    // Their rounds are far apart: only the notifications make them look.
    await join(3, { times });
    await untilShared([1, 2]);
    await join(3, { times });
    await untilShared([1, 1, 1]);
    await leaving.close();
    await untilShared([1, 2]);
  });

  it("ask for a share once they live, not as long as the database still has their last name", async () => {
    const { ledger, join, untilShared } = await begin();
    const times = { leaseMs: 1_000 };
    await Promise.all([join(2, { times }), join(2, { times })]);
    await untilShared([1, 1]);
    const database = await openDatabase({ url: ledger.url });
    onTestFinished(() => database.close());
    let asked = 0;
    let lives: number[] = [];
    await database.listen("coinslot_leases", () => {
      asked += 1;
    });
    // As where the answer to a renewal was lost: it counts, and its process does not know.
    await withDatabase(ledger.url, ({ execute }) =>
      execute(`
        update coinslot_leases set epoch = epoch + 10, expires_at_ms = expires_at_ms + 1000
        where name like 'settler:%'
      `),
    );
    await vi.waitFor(
      async () => {
        const rows = await withDatabase(ledger.url, ({ read }) =>
          read("select epoch from coinslot_leases where name like 'settler:%' order by epoch"),
        );
        lives = rows.map(({ epoch }) => Number(epoch) - 11);
        expect(Math.min(...lives)).toBeGreaterThan(0);
      },
      { timeout: 20_000, interval: 20 },
    );
    // Once for each life; a busy machine may lose a short lease once more.
    expect(asked).toBeLessThanOrEqual(sumOf(lives));
    await untilShared([1, 1]);
  });

  it("notify the others of a relayer that they took, not of one that they held before", async () => {
    const { devnet, ledger, join, epochs, untilShared } = await begin();
    await join(2, { times: { leaseMs: 2_000 } });
    await untilShared([2]);
    const database = await openDatabase({ url: ledger.url });
    onTestFinished(() => database.close());
    let notified = 0;
    await database.listen("coinslot_leases", () => {
      notified += 1;
    });
    // As after a step of the database's clock: its process does not know until it renews them.
    await withDatabase(ledger.url, async ({ execute }) => {
      await execute("update coinslot_leases set expires_at_ms = 0 where name like 'relayer:%'");
      await execute(`select pg_notify('coinslot_leases', '${devnet.network}')`);
    });
    let taken: number[] = [];
    await vi.waitFor(
      async () => {
        taken = (await epochs()).map((epoch) => epoch - 1);
        expect(Math.min(...taken)).toBeGreaterThan(0);
      },
      { timeout: 20_000, interval: 20 },
    );
    // The test's own, and one for each that was taken.
    expect(notified).toBeLessThanOrEqual(1 + sumOf(taken));
  });

  it("share by the database's clock, whatever their own say", async () => {
    const { join, untilShared } = await begin();
    await join(2, { now: () => Date.now() + 3_600_000, times: { leaseMs: 1_000 } });
    await join(2, { now: () => Date.now() - 3_600_000, times: { leaseMs: 1_000 } });
    await untilShared([1, 1]);
  });

  it("leave the lease of an older release alone, and share the others", async () => {
    const { devnet, ledger, join, owners } = await begin();
    const database = await openDatabase({ url: ledger.url });
    onTestFinished(() => database.close());
    await (await join(1)).close();
    await withDatabase(ledger.url, ({ execute }) =>
      execute(`
        update coinslot_leases set owner = 'older', epoch = epoch + 1, expires_at_ms = 9e15
        where name = 'relayer:${devnet.network}:${devRelayer(0)}'
      `),
    );
    await Promise.all([join(3), join(3)]);
    await vi.waitFor(async () => {
      const held = await owners();
      expect(held).toContain("older");
      expect(new Set(held).size).toBe(3);
    }, 20_000);
  });

  it("each settle what they sold, and notify no other process of it", async () => {
    const { join, untilShared, pay, carriers, listenTo } = await begin();
    const [one, two] = [await join(2), await join(2)];
    await untilShared([1, 1]);
    // Once, so that the relayers are reconciled.
    expect(await settle(one, await pay())).toMatchObject({ success: true });
    expect(await settle(two, await pay())).toMatchObject({ success: true });
    const heard = await listenTo("coinslot_queue", "coinslot_outcomes");
    const before = (await carriers()).length;
    for (const seller of [one, two]) {
      const payments = await Promise.all(Array.from({ length: 5 }, () => pay()));
      const settled = await Promise.all(payments.map((paid) => settle(seller, paid)));
      expect(settled.every(({ success }) => success)).toBe(true);
    }
    const carried = (await carriers()).slice(before);
    expect(new Set(carried.slice(0, 5)).size).toBe(1);
    expect(new Set(carried.slice(5)).size).toBe(1);
    expect(new Set(carried).size).toBe(2);
    expect(heard).toEqual([]);
  });

  it("settle at once for a process without a relayer, and notify that one alone", async () => {
    const { join, untilShared, pay, listenTo, owners } = await begin();
    const holder = await join(1, { times: noSweeps });
    await untilShared([1]);
    const [holderId] = await owners();
    const seller = await join(1, { times: noSweeps });
    const heard = await listenTo("coinslot_queue", "coinslot_outcomes");
    const payments = await Promise.all(Array.from({ length: 5 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(seller, paid)));
    expect(settled.every(({ success }) => success)).toBe(true);
    expect(new Set(heard)).toEqual(new Set([`coinslot_queue_${holderId}`]));
    expect(await settle(holder, await pay())).toMatchObject({ success: true });
  });

  it("try a payment once that one sells and another settles", async () => {
    const { devnet, join, pay } = await begin();
    const node = await startCountingProxy(devnet.rpcUrl);
    onTestFinished(() => node.close());
    const options = {
      network: { rpcUrls: [node.url] as const },
      times: noSweeps,
      // By this clock a trial is fresh, however busy the machine is.
      clock: { now: () => systemClock.now() / 1_000, setTimer: systemClock.setTimer },
    };
    await join(1, options);
    const seller = await join(1, options);
    const paid = await pay();
    node.take();
    const settled = await settle(seller, paid, await reserve(seller, paid));
    expect(settled).toMatchObject({ success: true });
    expect(node.take().get("eth_call")).toBe(1);
  });

  /** Two processes with a relayer each, of which the first one's has lost its gas money. */
  async function beginWithPoor(options: NonNullable<Parameters<SettlingDevnet["start"]>[0]>) {
    const here = await begin();
    const { devnet, join, untilShared, pay, carriers } = here;
    const first = await join(2, options);
    const second = await join(2, options);
    await untilShared([1, 1]);
    for (const each of [first, second]) {
      expect(await settle(each, await pay())).toMatchObject({ success: true });
    }
    const [ofFirst] = await carriers();
    if (ofFirst === undefined) throw new Error("It has not settled");
    await devnet.client.setBalance({ address: `0x${ofFirst.slice(2)}`, value: 1n });
    await vi.waitFor(async () => {
      const balances = await first.metrics.getSingleMetricAsString("coinslot_relayer_balance_wei");
      expect(balances).toMatch(/ 1$/m);
    }, 20_000);
    return { ...here, first, ofFirst };
  }

  it("settle at once for a process whose relayer has no gas money", async () => {
    const times = { ...noSweeps, idleMs: 500 };
    const { first, ofFirst, owners, pay, carriers } = await beginWithPoor({ times });
    expect(await settle(first, await pay())).toMatchObject({ success: true });
    expect((await carriers()).at(-1)).not.toBe(ofFirst);
    expect(await owners()).toHaveLength(2);
  });

  it("get a payment from a process whose relayer cannot pay, also without a configured minimum", async () => {
    const { first, ofFirst, pay, carriers, listenTo } = await beginWithPoor({
      network: { minimumBalance: 0n },
      times: { idleMs: 500, sweepMs: 300 },
    });
    const heard = await listenTo("coinslot_queue");
    expect(await settle(first, await pay())).toMatchObject({ success: true });
    expect((await carriers()).at(-1)).not.toBe(ofFirst);
    expect(heard).not.toEqual([]);
  });

  it("settle after some sweeps what another process sold and has no place for", async () => {
    const { devnet, join, untilShared, pay, carriers } = await begin();
    const options = { maxTransactionsInFlight: 1, times: { sweepMs: 200 } };
    const [full, idle] = [await join(2, options), await join(2, options)];
    await untilShared([1, 1]);
    for (const each of [full, idle]) {
      expect(await settle(each, await pay())).toMatchObject({ success: true });
    }
    await devnet.setAutomine(false);
    const waiting = [settle(full, await pay())];
    await vi.waitFor(async () => expect(await carriers()).toHaveLength(3), 20_000);
    waiting.push(settle(full, await pay()));
    await vi.waitFor(async () => expect(await carriers()).toHaveLength(4), 20_000);
    const [ofFull, ofIdle, third, fourth] = await carriers();
    expect([third, fourth]).toEqual([ofFull, ofIdle]);
    await devnet.setAutomine(true);
    await devnet.mine();
    expect(await Promise.all(waiting)).toMatchObject([{ success: true }, { success: true }]);
  });

  it("send what they have just stored, and give the relayer back after that", async () => {
    const { join, untilShared, pay } = await begin();
    const leaseMs = 60_001;
    const sent: string[] = [];
    const noteAs = (name: string) => {
      const note = (_fields: object, text?: string) => {
        if (text === "transaction sent") sent.push(name);
      };
      return { debug: note, info: note, warn: note, error: note };
    };
    let leave = () => {};
    const isLeaving = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const first = await join(2, {
      times: { ...noSweeps, leaseMs },
      logger: noteAs("first"),
      clock: {
        ...systemClock,
        setTimer(run, delayMs) {
          // Of a relayer that is about to be given back: a lease's own deadline is a little
          // earlier.
          if (delayMs === leaseMs) leave();
          return systemClock.setTimer(run, delayMs);
        },
      },
      async faultPoint(name) {
        if (name !== "stored" || sent.length > 0) return;
        await join(2, { times: { ...noSweeps, leaseMs }, logger: noteAs("second") });
        await isLeaving;
      },
    });
    await untilShared([2]);
    expect(await settle(first, await pay())).toMatchObject({ success: true });
    await untilShared([1, 1]);
    expect(sent).toEqual(["first"]);
  });

  it("settle what a process has queued when it stops", async () => {
    const { devnet, join, untilShared, pay, carriers, balanceOf } = await begin();
    const options = { maxTransactionsInFlight: 1, times: noSweeps };
    const [stopping, other] = [await join(2, options), await join(2, options)];
    await untilShared([1, 1]);
    for (const each of [stopping, other]) {
      expect(await settle(each, await pay())).toMatchObject({ success: true });
    }
    await devnet.setAutomine(false);
    const waiting = [settle(stopping, await pay())];
    await vi.waitFor(async () => expect(await carriers()).toHaveLength(3), 20_000);
    waiting.push(settle(stopping, await pay()));
    await vi.waitFor(async () => {
      const { payments } = await other.payments.list({ state: "queued" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    await stopping.close();
    await Promise.allSettled(waiting);
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(
      async () => expect(await balanceOf(devnet.accounts.seller.address)).toBe(4_000n),
      20_000,
    );
  });

  it("settle themselves what they handed over to a process that died", async () => {
    const here = await begin();
    const { devnet, join, untilShared, pay, carriers } = here;
    await devnet.setAutomine(false);
    const dying = spawnSettling(program(), here, [await pay()], { dieAt: "included" });
    const died = once(dying, "close");
    await untilShared([1], 40_000);
    await vi.waitFor(async () => expect(await carriers()).toHaveLength(1), 20_000);
    const seller = await join(1, { times: { ...noSweeps, leaseMs: 1_500 } });
    const settled = settle(seller, await pay());
    await vi.waitFor(async () => {
      const { payments } = await seller.payments.list({ state: "queued" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    await devnet.setAutomine(true);
    await devnet.mine();
    await died;
    expect(await settled).toMatchObject({ success: true });
  });

  it("read the queue when a process of an older release asks all for it", async () => {
    const { devnet, ledger, join, untilShared, pay } = await begin();
    const settler = await join(1, { times: noSweeps });
    await untilShared([1]);
    const seller = await join(1, {
      // Its poll finds the outcome, which comes before the wait for it.
      times: { sweepMs: 500 },
      async faultPoint(name) {
        // As one whose release has no channels of its own: its payments are held by no settler.
        if (name !== "queued") return;
        await withDatabase(ledger.url, async ({ execute }) => {
          await execute("insert into processes (id, heartbeat_at) values ('older', 9e15)");
          await execute("update payments set owner = 'older' where state = 'queued'");
          await execute(`select pg_notify('coinslot_queue', '${devnet.network}')`);
        });
        // Its own hand-over comes too late to count.
        await vi.waitFor(async () => {
          const { payments } = await settler.payments.list({ state: "confirmed" });
          expect(payments).toHaveLength(1);
        }, 20_000);
      },
    });
    expect(await settle(seller, await pay())).toMatchObject({ success: true });
  });
});
