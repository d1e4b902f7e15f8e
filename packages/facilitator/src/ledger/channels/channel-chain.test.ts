import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { loseTransaction, settleTransaction } from "../transactions/settle-transaction.ts";
import { storeTransaction } from "../transactions/store-transaction.ts";
import type { ChannelKey } from "./channel.ts";
import {
  concludeClaims,
  findSentClaims,
  forgetClaims,
  insertClaims,
  isPublished,
} from "./channel-claims.ts";
import { findLastSettle, findReceivers, insertSettle } from "./channel-settles.ts";
import { type ChannelReading, findKnown, findMoving, readChannelState } from "./channel-state.ts";
import { readWatch, recordWatch } from "./channel-watch.ts";
import { chargeChannel } from "./charge-channel.ts";
import { findClaimable } from "./claimable.ts";
import { mirrorChannel } from "./mirror-channel.ts";
import { openChannel, readChannel } from "./open-channel.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });

const place = { network: "eip155:9745", contract: account(0x4020) } as const;
const keyOf = (id: number): ChannelKey => ({ ...place, channelId: word(id) });
const key = keyOf(1);
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: word(0),
};
const relayer = account(7);

/** A channel with 1,000 units at a block. */
const reading = (number: number, parts: Partial<ChannelReading> = {}): ChannelReading => ({
  balance: 1_000n,
  totalClaimed: 0n,
  withdrawal: undefined,
  refundNonce: 0n,
  block: { number, hash: word(number) },
  ...parts,
});
const withdrawal = { amount: 700n, initiatedAt: 50 };

describe.each(engines)("the chain's side of channels in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;
  let lease: Lease;

  const mirror = (parts: Partial<Parameters<typeof mirrorChannel>[1]> = {}, ledger = first) => {
    const { head = reading(10) } = parts;
    return mirrorChannel(ledger, {
      ...key,
      head,
      served: head,
      final: undefined,
      lease,
      maxLead: 10,
      ...parts,
    });
  };

  const charge = (amount: bigint, seen = 0n, channel = key) =>
    chargeChannel(second, {
      ...channel,
      id: `charge-${seen}`,
      seen,
      base: seen,
      amount,
      ceiling: seen + amount,
      signature: `0x${"ab".repeat(65)}`,
      fingerprint: "GET /weather",
    });

  async function takeLease(name: string, owner: string): Promise<Lease> {
    const taken = await first.leases.acquire({ name, owner, ttlMs: 60_000 });
    if (taken === undefined) throw new Error("The lease is held.");
    return taken;
  }

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
    lease = await takeLease("channels", "first");
    await openChannel(first, { ...key, config, totalClaimed: 0n });
  });

  describe("a mirror", () => {
    it("makes money secure only as deep as a deposit has to be", async () => {
      expect(await mirror({ served: reading(8, { balance: 400n }) })).toMatchObject({
        outcome: "written",
        secure: 400n,
      });
      expect(await charge(401n)).toBe(false);
      expect(await charge(400n)).toBe(true);
    });

    it("secures final money alone where no node returns the depth of a deposit", async () => {
      const final = reading(6, { balance: 400n });
      await mirror({ served: reading(8, { balance: 100n }) });
      await mirror({ head: reading(11), served: undefined, final });
      expect(await readChannel(second, key)).toMatchObject({ secure: 400n });
      await mirror({ head: reading(12) });
      await mirror({ head: reading(13), served: undefined, final });
      expect(await readChannel(second, key)).toMatchObject({ secure: 1_000n });
      await mirror({ head: reading(14, { withdrawal }), served: undefined, final });
      expect(await readChannel(second, key)).toMatchObject({ secure: 300n });
    });

    it("lowers what is secure by a withdrawal that either depth has", async () => {
      await mirror({ head: reading(10, { withdrawal }) });
      expect(await readChannel(second, key)).toMatchObject({ secure: 300n });
      await mirror({ head: reading(11), served: reading(9, { withdrawal }) });
      expect(await readChannel(second, key)).toMatchObject({ secure: 300n });
      await mirror({ head: reading(12) });
      expect(await readChannel(second, key)).toMatchObject({ secure: 1_000n });
    });

    it("counts as lost what was charged above the balance, until that is back", async () => {
      await mirror();
      await charge(900n);
      const emptied = reading(11, { balance: 250n, totalClaimed: 250n });
      expect(await mirror({ head: emptied })).toMatchObject({ lost: 650n, lostBefore: 0n });
      expect(await readChannel(second, key)).toMatchObject({ secure: 250n, lost: 650n });
      expect(await mirror({ head: reading(12) })).toMatchObject({ lost: 0n, lostBefore: 650n });
    });

    it("a mirror of an older block changes nothing, unless the later one has left the chain", async () => {
      await mirror({ head: reading(10, { withdrawal }) });
      expect(await mirror({ head: reading(9) })).toEqual({ outcome: "stale" });
      expect(await mirror({ head: reading(10), lease: undefined })).toMatchObject({
        outcome: "written",
      });
      const fork = { number: 10, hash: word(99) };
      await mirror({ head: reading(10, { withdrawal }) });
      expect(await mirror({ head: reading(10, { block: fork }), lease: undefined })).toEqual({
        outcome: "stale",
      });
      expect(await mirror({ head: reading(9), replaces: word(10) })).toMatchObject({
        secure: 1_000n,
      });
    });

    it("is refused under a lease that another process has taken", async () => {
      await first.leases.release(lease);
      await takeLease("channels", "second");
      expect(await mirror()).toEqual({ outcome: "lease_lost" });
      expect(await readChannelState(first, key)).toBeUndefined();
    });

    it("a mirror of a channel that the ledger does not know is not kept", async () => {
      expect(await mirror(keyOf(2))).toEqual({ outcome: "unknown" });
      expect(await findKnown(first, { ...place, ids: [word(1), word(2)] })).toEqual([word(1)]);
    });

    it("moves until the chain's final state is the head's", async () => {
      await mirror({ final: reading(4, { balance: 0n }) });
      expect(await findMoving(first, place)).toEqual([
        { channelId: key.channelId, block: reading(10).block },
      ]);
      await mirror({ head: reading(16), final: reading(10) });
      expect(await findMoving(first, place)).toEqual([]);
      expect(await readChannelState(second, key)).toMatchObject({
        isMoving: false,
        final: { balance: 1_000n, block: { number: 10 } },
      });
    });

    it("a mirror and charges that come at once leave nothing above the balance that is not lost", async () => {
      await mirror();
      for (let seen = 0n; seen < 200n; seen += 10n) {
        const number = 20 + Number(seen);
        const balance = seen + (seen % 20n === 0n ? 0n : 1_000n);
        await Promise.all([charge(10n, seen), mirror({ head: reading(number, { balance }) })]);
        const after = await readChannel(first, key);
        expect(after?.lost).toBe(max(0n, (after?.charged ?? 0n) - balance));
        if (after?.charged === seen) {
          await mirror({ head: reading(number + 1) });
          expect(await charge(10n, seen)).toBe(true);
        } else await mirror({ head: reading(number + 1) });
      }
    });
  });

  it("records how far the watcher has come, under its lease alone", async () => {
    const block = { number: 7, hash: word(7), time: 70 };
    expect(await readWatch(second, place)).toBeUndefined();
    expect(await recordWatch(first, lease, { ...place, block, since: 5 })).toBe(true);
    expect(await readWatch(second, place)).toMatchObject({ block, since: 5 });
    const next = { ...block, number: 8 };
    expect(await recordWatch(first, lease, { ...place, block: next, since: 5 })).toBe(true);
    await first.leases.release(lease);
    await takeLease("channels", "second");
    expect(await recordWatch(first, lease, { ...place, block, since: 5 })).toBe(false);
    expect(await readWatch(second, place)).toMatchObject({ block: next });
  });

  it("finds channels with unclaimed money, page by page, with their state where it is known", async () => {
    await mirror();
    await openChannel(first, { ...keyOf(2), config, totalClaimed: 0n });
    await openChannel(first, { ...keyOf(3), config, totalClaimed: 0n });
    await shared.read(sql`update channels set secure = ${first.dialect.amount.encode(50n)}`);
    await charge(10n);
    await charge(20n, 0n, keyOf(2));
    const [one, ...none] = await findClaimable(second, { ...place, limit: 1 });
    expect(none).toEqual([]);
    expect(one).toMatchObject({
      channel: { channelId: word(1), charged: 10n },
      config,
      state: { balance: 1_000n },
    });
    const rest = await findClaimable(second, { ...place, after: word(1), limit: 9 });
    expect(rest.map(({ channel, state }) => [channel.channelId, state])).toEqual([
      [word(2), undefined],
    ]);
  });

  describe("a claim", () => {
    const claim = { ...key, totalClaimed: 10n, ceiling: 12n, signature: "0xab" } as const;
    let relayerLease: Lease;

    beforeEach(async () => {
      relayerLease = await takeLease("relayer", "first");
      await mirror({ final: reading(10) });
      expect(await charge(10n)).toBe(true);
    });

    const store = (nonce: number, alongside: Parameters<typeof storeTransaction>[2]["alongside"]) =>
      storeTransaction(first, relayerLease, {
        id: `transaction-${nonce}`,
        network: place.network,
        relayer,
        nonce,
        gasLimit: 100_000n,
        broadcast: {
          hash: word(1_000 + nonce),
          raw: "0x02",
          content: "calls",
          maxFeePerGas: 1n,
          maxPriorityFeePerGas: undefined,
        },
        payments: [],
        alongside,
      });

    const storeClaim = (nonce: number) =>
      store(nonce, (transaction, transactionId) =>
        insertClaims(first, transaction, { transactionId, claims: [claim] }),
      );

    it("is stored with its transaction or not at all, and makes its channel move", async () => {
      expect(await findMoving(first, place)).toEqual([]);
      expect(await storeClaim(0)).toBe("stored");
      expect(await findSentClaims(second, place.network)).toEqual([
        {
          ...claim,
          transactionId: "transaction-0",
          isRefund: false,
          transaction: { state: "open" },
        },
      ]);
      expect(await findMoving(first, place)).toHaveLength(1);
      await first.leases.release(relayerLease);
      expect(await storeClaim(1)).toBe("lease_lost");
      expect(await findSentClaims(second, place.network)).toHaveLength(1);
    });

    it("follows its transaction into a block, out of it, and to its loss", async () => {
      await storeClaim(0);
      const standing = async () =>
        (await findSentClaims(second, place.network)).map(({ transaction }) => transaction);
      await first.write((transaction) =>
        settleTransaction({
          transaction,
          dialect: first.dialect,
          id: "transaction-0",
          inclusion: { transactionHash: word(1_000), blockNumber: 11, blockHash: word(11) },
          gasUsed: 60_000n,
        }),
      );
      expect(await standing()).toEqual([{ state: "included", blockNumber: 11 }]);
      await shared.read(
        sql`update transactions set state = 'open', block_number = null, block_hash = null`,
      );
      expect(await standing()).toEqual([{ state: "open" }]);
      await shared.read(sql`insert into broadcasts (hash, transaction_id, raw, content,
        max_fee_per_gas, created_at) select 'other', transaction_id, raw, 'filler', max_fee_per_gas,
        created_at from broadcasts`);
      expect(await standing()).toEqual([{ state: "gone" }]);
      await shared.read(sql`delete from broadcasts where content = 'filler'`);
      await loseTransaction(first, "transaction-0");
      expect(await standing()).toEqual([{ state: "gone" }]);
    });

    it("ends once, and is forgotten later", async () => {
      await storeClaim(0);
      const [open] = await findSentClaims(first, place.network);
      if (open === undefined) throw new Error("No claim.");
      await concludeClaims(first, [{ ...open, isDone: true }]);
      await concludeClaims(second, [{ ...open, isDone: false }]);
      expect(await findSentClaims(first, place.network)).toEqual([]);
      const states = () => shared.read(sql`select state from channel_claims`);
      expect(await states()).toEqual([{ state: "done" }]);
      expect(await findReceivers(first, place)).toEqual([
        { receiver: config.receiver, token: config.token },
      ]);
      const { network } = place;
      await forgetClaims(first, { network, before: first.now() });
      expect(await states()).toHaveLength(1);
      // Its voucher covers more than the chain has paid: until then it is known as public.
      await forgetClaims(first, { network, before: first.now() + 1 });
      expect(await states()).toHaveLength(1);
      expect(await isPublished(first, claim)).toBe(true);
      expect(await readChannelState(first, key)).toMatchObject({ published: claim.ceiling });
      await mirror({ head: reading(20, { totalClaimed: claim.ceiling }) });
      expect(await readChannelState(first, key)).toMatchObject({ published: claim.ceiling });
      await forgetClaims(first, { network, before: first.now() + 1 });
      expect(await states()).toEqual([]);
    });

    it("is settled by a transaction of its own", async () => {
      const { receiver, token } = config;
      const settled = { ...place, receiver, token };
      expect(await findLastSettle(first, settled)).toBeUndefined();
      await store(5, (transaction, transactionId) =>
        insertSettle(first, transaction, { ...settled, transactionId, amount: 10n }),
      );
      expect(await findLastSettle(second, settled)).toEqual({
        createdAt: first.now(),
        isOpen: true,
      });
      await loseTransaction(first, "transaction-5");
      expect(await findLastSettle(second, settled)).toMatchObject({ isOpen: false });
    });
  });
});

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
