import type { ChannelConfig, Hex } from "@coinslot/protocol";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";
import { dropDue, findDues } from "./channel-dues.ts";
import { type Charge, chargeChannel } from "./charge-channel.ts";
import { deliverCharges, lowerCharge } from "./end-charge.ts";
import { openChannel, readChannel, readChannelConfig } from "./open-channel.ts";
import { releaseRun, reserveRun } from "./reserve-run.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });

const network = "eip155:9745";
const keyOf = (id: number): ChannelKey => ({
  network,
  contract: account(0x4020),
  channelId: word(id),
});
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: word(0),
};
const key = keyOf(1);
let names = 0;

/** A charge of 10 on a fresh channel, unless the parts say otherwise. */
function charge(parts: Partial<Charge> = {}): Charge {
  names += 1;
  const { seen = 0n, base = seen, amount = 10n } = parts;
  return {
    ...key,
    id: `charge-${names}`,
    seen,
    base,
    amount,
    ceiling: base + 10n,
    signature: `0x${"ab".repeat(65)}`,
    fingerprint: "GET /weather",
    ...parts,
  };
}

describe.each(engines)("channels in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  /** A channel with money that no payer can take back. */
  async function open(channel: ChannelKey, secure = 1_000n, totalClaimed = 0n) {
    const opened = await openChannel(first, { ...channel, config, totalClaimed });
    await setSecure(channel, secure);
    return opened;
  }

  function setSecure({ channelId }: ChannelKey, secure: bigint) {
    const amount = first.dialect.amount.encode(secure);
    return shared.read(sql`update channels set secure = ${amount} where channel_id = ${channelId}`);
  }

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
    await open(key);
  });

  it("are opened once, at what the chain has paid", async () => {
    const other = keyOf(2);
    expect(await readChannel(first, other)).toBeUndefined();
    const opened = await open(other, 0n, 700n);
    expect(opened).toEqual({
      ...other,
      charged: 700n,
      voucher: undefined,
      secure: 0n,
      lost: 0n,
      isRefunding: false,
      run: undefined,
      last: undefined,
    });
    const again = { ...other, config: { ...config, payer: account(9) }, totalClaimed: 9n };
    expect(await openChannel(second, again)).toMatchObject({ charged: 700n });
    expect(await readChannelConfig(second, other)).toEqual(config);
  });

  it("keep a charge with the voucher that covers it", async () => {
    const less = charge({ amount: 4n, keyHash: "key" });
    expect(await chargeChannel(first, less)).toBe(true);
    const { ceiling, signature } = less;
    expect(await readChannel(second, key)).toMatchObject({
      charged: 4n,
      voucher: { ceiling, signature },
      last: {
        id: less.id,
        fingerprint: "GET /weather",
        keyHash: "key",
        amount: 4n,
        isDelivered: false,
      },
    });
    // The next ceiling may be lower than one more price: 4 + 6.
    expect(await chargeChannel(second, charge({ seen: 4n, amount: 6n, ceiling: 10n }))).toBe(true);
    expect(await readChannel(first, key)).toMatchObject({
      charged: 10n,
      voucher: { ceiling: 10n },
    });
  });

  it("charge one of a thousand equal vouchers that come at once to two processes", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        chargeChannel(index % 2 === 0 ? first : second, charge()),
      ),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect(await readChannel(first, key)).toMatchObject({ charged: 10n });
  });

  it("charge many channels at once in two processes, each of them once", async () => {
    const keys = Array.from({ length: 100 }, (_, index) => keyOf(10 + index));
    await Promise.all(keys.map((each) => open(each)));
    const bids = [first, second].flatMap((ledger, process) => {
      const order = process === 0 ? keys : keys.toReversed();
      return order.map((each) => chargeChannel(ledger, charge(each)));
    });
    expect((await Promise.all(bids)).filter(Boolean)).toHaveLength(keys.length);
    const charged = await Promise.all(keys.map((each) => readChannel(first, each)));
    expect(new Set(charged.map((each) => each?.charged))).toEqual(new Set([10n]));
    expect(await findDues(first, { network, limit: 1_000 })).toHaveLength(keys.length);
  });

  it("charge in a row by any process, and never on an old base", async () => {
    for (let step = 0; step < 20; step += 1) {
      const seen = BigInt(step) * 10n;
      const ledger = step % 2 === 0 ? first : second;
      expect(await chargeChannel(ledger, charge({ seen }))).toBe(true);
      expect(await chargeChannel(ledger, charge({ seen }))).toBe(false);
    }
    expect(await readChannel(first, key)).toMatchObject({ charged: 200n });
  });

  it("are not charged above what is secure, nor during a refund, nor if unknown", async () => {
    await setSecure(key, 9n);
    expect(await chargeChannel(first, charge())).toBe(false);
    await setSecure(key, 10n);
    await shared.read(sql`update channels set refunding = 1`);
    expect(await chargeChannel(first, charge())).toBe(false);
    expect(await reserveRun(first, { ...key, seen: 0n, token: "a" })).toBe(false);
    await shared.read(sql`update channels set refunding = 0`);
    expect(await chargeChannel(first, charge({ ...keyOf(99) }))).toBe(false);
    expect(await chargeChannel(first, charge())).toBe(true);
    // Compared as numbers: as letters, 9 is above 10.
    await setSecure(key, 9n);
    expect(await chargeChannel(first, charge({ seen: 10n, ceiling: 100n }))).toBe(false);
  });

  it("take no charge that its voucher does not cover", async () => {
    const wrong: Partial<Charge>[] = [
      { amount: 11n },
      { amount: -1n },
      { seen: 5n, base: 4n },
      { base: 5n, amount: 6n, ceiling: 10n },
    ];
    for (const parts of wrong) {
      await expect(chargeChannel(first, charge(parts))).rejects.toThrow(RangeError);
    }
    expect(await readChannel(first, key)).toMatchObject({ charged: 0n, last: undefined });
  });

  it("catch up with the chain where it has paid more than the ledger knows of", async () => {
    const restored = charge({ seen: 0n, base: 300n });
    expect(await chargeChannel(first, restored)).toBe(true);
    expect(await readChannel(first, key)).toMatchObject({ charged: 310n });
  });

  it("remember a free answer, and owe nothing for it", async () => {
    const free = charge({ amount: 0n });
    expect(await chargeChannel(first, free)).toBe(true);
    expect(await readChannel(first, key)).toMatchObject({ charged: 0n, last: { id: free.id } });
    expect(await findDues(first, { network, limit: 10 })).toEqual([]);
  });

  describe("channels with a reserved run", () => {
    const run = { ...key, seen: 0n, token: "mine" };

    it("let one handler run for a voucher, in any process", async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          reserveRun(index % 2 === 0 ? first : second, { ...run, token: `run-${index}` }),
        ),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
    });

    it("are charged by that run alone, which ends it", async () => {
      expect(await reserveRun(first, run)).toBe(true);
      expect(await chargeChannel(second, charge())).toBe(false);
      expect(await chargeChannel(second, charge({ token: "another" }))).toBe(false);
      expect(await chargeChannel(first, charge({ token: "mine" }))).toBe(true);
      expect(await readChannel(first, key)).toMatchObject({ charged: 10n, run: undefined });
    });

    it("are free again after a run that charges nothing", async () => {
      await reserveRun(first, run);
      await releaseRun(second, { ...key, token: "another" });
      expect(await reserveRun(second, { ...run, token: "theirs" })).toBe(false);
      await releaseRun(first, run);
      expect(await reserveRun(second, { ...run, token: "theirs" })).toBe(true);
      expect(await chargeChannel(first, charge({ token: "mine" }))).toBe(false);
    });

    it("are taken from a process that died, which charges nothing once it wakes up", async () => {
      await reserveRun(first, run);
      await shared.silence("first");
      expect(await reserveRun(second, { ...run, token: "theirs" })).toBe(true);
      expect(await chargeChannel(first, charge({ token: "mine" }))).toBe(false);
      expect(await chargeChannel(second, charge({ token: "theirs" }))).toBe(true);
    });

    it("are not reserved on an old base", async () => {
      await chargeChannel(first, charge());
      expect(await reserveRun(first, run)).toBe(false);
    });
  });

  it("take a charge back while it is the last one, and its answer has not gone out", async () => {
    const once = charge();
    await chargeChannel(first, once);
    expect(await lowerCharge(first, { ...once, base: 0n, amount: 0n })).toBe(true);
    expect(await readChannel(first, key)).toMatchObject({
      charged: 0n,
      voucher: undefined,
      last: undefined,
    });
    expect(await lowerCharge(first, { ...once, base: 0n, amount: 0n })).toBe(false);

    const sent = charge();
    await chargeChannel(first, sent);
    await deliverCharges(first, { ...sent, charges: [sent] });
    expect(await lowerCharge(first, { ...sent, base: 0n, amount: 0n })).toBe(false);
    const next = charge({ seen: 10n });
    await chargeChannel(second, next);
    // Its mark comes after the next charge, whose own answer is still on its way.
    await deliverCharges(first, { ...sent, charges: [sent] });
    expect(await readChannel(first, key)).toMatchObject({
      charged: 20n,
      last: { id: next.id, isDelivered: false },
    });
  });

  it("race a reversal with the next charge: one of both counts", async () => {
    for (let round = 0; round < 20; round += 1) {
      const each = keyOf(200 + round);
      await open(each);
      const once = charge(each);
      await chargeChannel(first, once);
      const [isReversed, isCharged] = await Promise.all([
        lowerCharge(first, { ...once, base: 0n, amount: 0n }),
        chargeChannel(second, charge({ ...each, seen: 10n })),
      ]);
      expect([isReversed, isCharged].filter(Boolean)).toHaveLength(1);
      const { charged } = (await readChannel(first, each)) ?? {};
      expect(charged).toBe(isReversed ? 0n : 20n);
    }
  });

  it("list those with unclaimed money, until a claim has paid for all of it", async () => {
    await Promise.all([2, 3].map((id) => open(keyOf(id))));
    await chargeChannel(first, charge());
    await chargeChannel(first, charge(keyOf(3)));
    const idsOf = async (after?: Hex) => {
      const dues = await findDues(second, { network, limit: 10, after });
      return dues.map(({ channelId }) => channelId);
    };
    expect(await idsOf()).toEqual([word(1), word(3)]);
    expect(await idsOf(word(1))).toEqual([word(3)]);
    expect(await findDues(first, { network: "eip155:988", limit: 10 })).toEqual([]);
    expect(await dropDue(first, { ...key, claimed: 9n })).toBe(false);
    expect(await idsOf()).toEqual([word(1), word(3)]);
    expect(await dropDue(first, { ...key, claimed: 10n })).toBe(true);
    expect(await idsOf()).toEqual([word(3)]);
    await chargeChannel(first, charge({ seen: 10n }));
    expect(await idsOf()).toEqual([word(1), word(3)]);
  });

  it("never lose a due to the end of a claim that comes with the next charge", async () => {
    await chargeChannel(first, charge());
    for (let round = 1; round <= 30; round += 1) {
      const seen = BigInt(round) * 10n;
      const [isDropped, isCharged] = await Promise.all([
        dropDue(first, { ...key, claimed: seen }),
        chargeChannel(second, charge({ seen })),
      ]);
      expect(isCharged).toBe(true);
      const dues = await findDues(first, { network, limit: 10 });
      expect([isDropped, dues.length]).toEqual([isDropped, 1]);
    }
  });
});
