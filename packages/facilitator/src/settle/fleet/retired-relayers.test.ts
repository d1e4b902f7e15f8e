import { once } from "node:events";
import { devSeedPhrase, withDatabase } from "@coinslot/devnet";
import { useProgram } from "@coinslot/devnet/use-program";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openLedgerReader } from "../../ledger/ledger-reader.ts";
import { devRelayer, settle } from "../../testing/settling-actions.ts";
import { settlingProgram, spawnSettling } from "../../testing/settling-child.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

const program = useProgram(settlingProgram);
let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

const oldRelayer = devRelayer(0);
const newRelayer = devRelayer(3);
const newKey = { seedPhrase: devSeedPhrase, accountIndex: 4 };
/** Leases of dead processes have to end, and other tests run beside these. */
const testTimeout = 120_000;
const patient = { timeout: 90_000, interval: 50 };
const soon = {
  settleTimeoutSeconds: 90,
  times: { leaseMs: 3_000, sweepMs: 200, resendMs: 200, replaceMs: 60_000 },
};

async function begin(engine: Engine) {
  const here = await startSettlingDevnet(engine);
  settling = here;
  const { devnet, ledger, start, pay, balanceOf } = here;
  const oldKey = { privateKey: devnet.accounts.relayer.privateKey };

  /** The ledger's transactions in the order of their payments: relayer, nonce, state and forms. */
  async function transactions() {
    const rows = await withDatabase(ledger.url, ({ read }) =>
      read(`
        select relayer, nonce, state,
          (select count(*) from broadcasts b where b.transaction_id = t.id) as forms
        from transactions t order by created_at, id
      `),
    );
    return rows.map(({ relayer, nonce, state, forms }) => ({
      relayer: String(relayer),
      nonce: Number(nonce),
      state: String(state),
      forms: Number(forms),
    }));
  }

  /** Owners of the leases of a kind on a relayer, that have not ended. */
  async function holders(kind: "relayer" | "keyless", relayer: string): Promise<string[]> {
    const rows = await withDatabase(ledger.url, ({ read }) =>
      read(`
        select owner from coinslot_leases
        where name = '${kind}:${devnet.network}:${relayer}' and expires_at_ms > 0
      `),
    );
    return rows.map(({ owner }) => String(owner));
  }

  async function untilStates(expected: readonly string[]): Promise<void> {
    await vi.waitFor(async () => {
      const states = (await transactions()).map(({ state }) => state);
      expect(states).toEqual(expected);
    }, patient);
  }

  /** A process with the old key stores a transaction, and is killed before it sends it. */
  async function dieWithOldKey({ validForSeconds }: { validForSeconds: number }) {
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + validForSeconds);
    const paid = await pay({ authorization: { validBefore } });
    const child = spawnSettling(program(), here, [paid], { dieAt: "stored" });
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
    return paid;
  }

  /** State and number in flight of each relayer, as another program reads them. */
  async function standings() {
    const reader = await openLedgerReader({ url: ledger.url });
    const relayers = await reader.relayers().finally(() => reader.close());
    return Object.fromEntries(
      relayers.map(({ relayer, state, inFlight }) => [relayer, `${state} ${inFlight}`]),
    );
  }

  const countSent = (address: string) =>
    devnet.client.getTransactionCount({ address: `0x${address.slice(2)}` });
  const earned = () => balanceOf(devnet.accounts.seller.address);
  const join = (
    options: { retiring?: boolean; finalAfter?: number } & Parameters<typeof start>[0] = {},
  ) => {
    const { retiring = false, finalAfter, ...others } = options;
    const retiringRelayers = retiring ? [oldKey] : [];
    return start({
      ...soon,
      ...others,
      network: { relayer: newKey, retiringRelayers, ...(finalAfter && { finalAfter }) },
    });
  };
  return {
    ...here,
    oldKey,
    transactions,
    holders,
    untilStates,
    dieWithOldKey,
    standings,
    countSent,
    earned,
    join,
  };
}

describe.each(enginesByDay("sqlite"))("a relayer that retires, on %s", (engine) => {
  it(
    "has its transaction replaced until a block holds it, and plans nothing",
    async () => {
      const here = await begin(engine);
      const { devnet, start, join, pay, transactions, untilStates, countSent, earned } = here;
      const first = await start(soon);
      await devnet.setAutomine(false);
      const left = settle(first, await pay());
      await vi.waitFor(async () => expect(await transactions()).toHaveLength(1), patient);
      await Promise.allSettled([first.close(), left]);
      const next = await join({ retiring: true, times: { ...soon.times, replaceMs: 400 } });
      const sold = settle(next, await pay());
      await vi.waitFor(async () => {
        const [old, fresh] = await transactions();
        expect(old?.forms).toBeGreaterThan(1);
        expect(fresh?.relayer).toBe(newRelayer);
      }, patient);
      await devnet.setAutomine(true);
      await devnet.mine();
      expect(await sold).toMatchObject({ success: true });
      await untilStates(["settled", "settled"]);
      expect(await Promise.all([countSent(oldRelayer), countSent(newRelayer)])).toEqual([1, 1]);
      expect(await earned()).toBe(2_000n);
      // It is held as long as something is in flight.
      await vi.waitFor(
        async () => expect(await here.holders("relayer", oldRelayer)).toEqual([]),
        patient,
      );
    },
    testTimeout,
  );

  it(
    "has what a killed process stored sent by a process without its key, beside new sales",
    async () => {
      const here = await begin(engine);
      const { join, pay, dieWithOldKey, untilStates, countSent, earned } = here;
      await dieWithOldKey({ validForSeconds: 300 });
      const next = await join();
      expect(await settle(next, await pay())).toMatchObject({ success: true });
      await untilStates(["settled", "settled"]);
      expect(await Promise.all([countSent(oldRelayer), countSent(newRelayer)])).toEqual([1, 1]);
      expect(await earned()).toBe(2_000n);
      await vi.waitFor(
        async () => expect(await here.holders("keyless", oldRelayer)).toEqual([]),
        patient,
      );
    },
    testTimeout,
  );
});

describe("a relayer that retires in a fleet", () => {
  it(
    "is followed by those with its key, then by one without it, and by one that gets it back",
    async () => {
      const here = await begin("postgres");
      const { devnet, start, join, pay, transactions, holders, standings, untilStates, earned } =
        here;
      const old = await start(soon);
      const both = await join({ retiring: true });
      expect(await standings()).toEqual({ [oldRelayer]: "active 0", [newRelayer]: "active 0" });
      await vi.waitFor(
        async () => expect(await holders("relayer", newRelayer)).toHaveLength(1),
        patient,
      );
      await devnet.setAutomine(false);
      const pending = [Promise.allSettled([settle(old, await pay())])];
      await vi.waitFor(async () => expect(await transactions()).toHaveLength(1), patient);
      await old.close();
      const [owner] = await holders("relayer", newRelayer);
      await vi.waitFor(
        async () => expect(await holders("relayer", oldRelayer)).toEqual([owner]),
        patient,
      );
      pending.push(Promise.allSettled([settle(both, await pay())]));
      await vi.waitFor(async () => expect(await transactions()).toHaveLength(2), patient);
      expect(await standings()).toEqual({ [oldRelayer]: "retiring 1", [newRelayer]: "active 1" });
      await both.close();

      await join();
      await vi.waitFor(
        async () => expect(await holders("keyless", oldRelayer)).toHaveLength(1),
        patient,
      );
      expect(await holders("relayer", oldRelayer)).toEqual([]);
      expect(await standings()).toEqual({ [oldRelayer]: "keyless 1", [newRelayer]: "active 1" });
      await join({ retiring: true });
      await vi.waitFor(async () => {
        expect(await holders("relayer", oldRelayer)).toHaveLength(1);
        expect(await holders("keyless", oldRelayer)).toEqual([]);
      }, patient);
      await Promise.all(pending);
      await devnet.setAutomine(true);
      await devnet.mine();
      await untilStates(["settled", "settled"]);
      expect((await transactions()).map(({ relayer }) => relayer)).toEqual([
        oldRelayer,
        newRelayer,
      ]);
      expect(await earned()).toBe(2_000n);
    },
    testTimeout,
  );
});

describe("a relayer whose key has gone", () => {
  it(
    "has its payments sent by another one once the foreign use of its nonce is final",
    async () => {
      const here = await begin("sqlite");
      const { devnet, join, dieWithOldKey, countSent, earned } = here;
      // A block takes a second on the chain, whenever it is mined.
      await dieWithOldKey({ validForSeconds: 50_000 });
      const { relayer } = devnet.accounts;
      await devnet.client.sendTransaction({ account: relayer, to: relayer.address, value: 0n });
      const usedAt = await devnet.client.getBlockNumber();
      const finalAfter = 10;
      const next = await join({ finalAfter, times: { ...soon.times, loseMs: 100 } });
      await vi.waitFor(async () => {
        await devnet.mine(1);
        const { payments } = await next.payments.list();
        expect(payments).toMatchObject([{ state: "confirmed" }]);
      }, patient);
      const [payment] = (await next.payments.list()).payments;
      expect(payment?.inclusion?.blockNumber).toBeGreaterThan(Number(usedAt) + finalAfter);
      expect(await Promise.all([countSent(oldRelayer), countSent(newRelayer)])).toEqual([1, 1]);
      expect(await earned()).toBe(1_000n);
    },
    testTimeout,
  );

  it(
    "is given up once its payments are over, and sells again when its key is back",
    async () => {
      const here = await begin("sqlite");
      const { devnet, start, join, pay, dieWithOldKey, untilStates, earned, countSent } = here;
      await dieWithOldKey({ validForSeconds: 300 });
      const { relayer } = devnet.accounts;
      await devnet.client.setBalance({ address: relayer.address, value: 0n });
      let aheadMs = 0;
      const now = () => Date.now() + aheadMs;
      const next = await join({ finalAfter: 2, now });
      aheadMs = 400_000;
      await devnet.client.increaseTime({ seconds: 400 });
      await devnet.client.mine({ blocks: 3 });
      await untilStates(["lost"]);
      expect((await next.payments.list()).payments).toMatchObject([{ state: "failed" }]);
      await next.close();

      await devnet.client.setBalance({ address: relayer.address, value: 10n ** 18n });
      const back = await start({ ...soon, now });
      const { timestamp } = await devnet.client.getBlock();
      const paid = await pay({ authorization: { validBefore: timestamp + 300n } });
      expect(await settle(back, paid)).toMatchObject({ success: true });
      await untilStates(["settled", "settled"]);
      expect(await countSent(oldRelayer)).toBe(2);
      expect(await earned()).toBe(1_000n);
    },
    testTimeout,
  );
});
