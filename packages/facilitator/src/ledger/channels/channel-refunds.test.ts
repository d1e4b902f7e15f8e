import type { ChannelConfig, Hex } from "@coinslot/protocol";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";
import { findLastRefund, findOpenRefunds, type OpenRefund, readRefund } from "./channel-refunds.ts";
import { chargeChannel } from "./charge-channel.ts";
import { deliverCharges, lowerCharge } from "./end-charge.ts";
import { lockRefund, type NewRefund } from "./lock-refund.ts";
import { endRefund, noteRefundEvent, recordRefundSent } from "./move-refund.ts";
import { openChannel, readChannel } from "./open-channel.ts";
import { reserveRun } from "./reserve-run.ts";
import { giveUpCharge } from "./resume-charge.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const key: ChannelKey = {
  network: "eip155:9745",
  contract: account(0x4020),
  channelId: word(1),
};
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: word(0),
};
const limits = { perSigner: 3, perHour: 5 };
const hash = word(0xaa);
let names = 0;

function newRefund(parts: Partial<NewRefund> = {}): NewRefund & { limits: typeof limits } {
  names += 1;
  return {
    ...key,
    id: `refund-${names}`,
    signer: config.payerAuthorizer,
    seen: 0n,
    ceiling: 0n,
    asked: undefined,
    isPaidFor: true,
    sinceNumber: 7,
    limits,
    ...parts,
  };
}

describe.each(engines)("refunds of channels in the ledger, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
    await openChannel(first, { ...key, config, totalClaimed: 0n });
    await setSecure(key.channelId);
  });

  function setSecure(channelId: Hex) {
    const amount = first.dialect.amount.encode(1_000n);
    return shared.read(sql`update channels set secure = ${amount} where channel_id = ${channelId}`);
  }

  function charge(ledger: LedgerContext, seen: bigint, parts = {}) {
    names += 1;
    const id = `charge-${names}`;
    const amounts = { seen, base: seen, amount: 10n, ceiling: seen + 10n };
    const voucher = { signature: `0x${"ab".repeat(65)}` as const, fingerprint: "GET /weather" };
    return chargeChannel(ledger, { ...key, id, ...amounts, ...voucher, ...parts });
  }

  it("lock their channel: it is neither charged nor reserved until they have ended", async () => {
    const refund = newRefund({ asked: 400n });
    expect(await lockRefund(first, refund)).toEqual({ outcome: "locked" });
    expect(await charge(second, 0n)).toBe(false);
    expect(await reserveRun(second, { ...key, seen: 0n, token: "run" })).toBe(false);
    expect(await readChannel(first, key)).toMatchObject({ isRefunding: true });
    const [open] = await findOpenRefunds(second, { ...key, limit: 10 });
    expect(open).toMatchObject({ id: refund.id, state: "locked", asked: 400n, sinceNumber: 7 });
    if (open === undefined) throw new Error("None is open.");
    expect(await endRefund(second, open, { state: "failed", reason: "no_balance" })).toBe(true);
    expect(await endRefund(first, open, { state: "failed", reason: "another" })).toBe(false);
    expect(await readRefund(first, refund.id)).toMatchObject({
      state: "failed",
      reason: "no_balance",
      endedAt: expect.any(Number),
    });
    expect(await charge(second, 0n)).toBe(true);
  });

  it("are found page by page", async () => {
    const ids: string[] = [];
    for (let salt = 1; salt <= 3; salt += 1) {
      const own = { ...key, channelId: word(1_000 + salt) };
      await openChannel(first, { ...own, config, totalClaimed: 0n });
      await setSecure(own.channelId);
      const refund = newRefund(own);
      await lockRefund(first, refund);
      ids.push(refund.id);
    }
    const found: string[] = [];
    for (let after: OpenRefund | undefined; found.length < 4; ) {
      [after] = await findOpenRefunds(second, { ...key, limit: 1, after });
      if (after === undefined) break;
      found.push(after.id);
    }
    expect(found.sort()).toEqual(ids.sort());
  });

  it("begin once, of twenty at once in two processes", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        lockRefund(index % 2 === 0 ? first : second, newRefund()),
      ),
    );
    expect(outcomes.filter(({ outcome }) => outcome === "locked")).toHaveLength(1);
    expect(await findOpenRefunds(first, { ...key, limit: 10 })).toHaveLength(1);
  });

  it("wait for a request that runs, unless its process is dead", async () => {
    expect(await reserveRun(first, { ...key, seen: 0n, token: "run" })).toBe(true);
    expect(await lockRefund(second, newRefund())).toEqual({ outcome: "busy" });
    await shared.silence("first");
    expect(await lockRefund(second, newRefund())).toEqual({ outcome: "locked" });
    expect(await charge(first, 0n, { token: "run" })).toBe(false);
  });

  it("wait for a charge that a living process may still lower, and are lowered under no lock", async () => {
    const id = "upfront";
    expect(await charge(first, 0n, { id })).toBe(true);
    const refund = () => newRefund({ seen: 10n, ceiling: 10n });
    expect(await lockRefund(second, refund())).toEqual({ outcome: "busy" });
    await shared.silence("first");
    expect(await lockRefund(second, refund())).toEqual({ outcome: "locked" });
    // The process was frozen, and wakes up.
    expect(await lowerCharge(first, { ...key, id, base: 0n, amount: 0n })).toBe(false);
    expect(await readChannel(first, key)).toMatchObject({ charged: 10n });
  });

  it.each(["delivered", "given up"])("begin once the last answer is %s", async (how) => {
    const id = "last";
    await charge(first, 0n, { id });
    if (how === "given up") await giveUpCharge(first, { ...key, id });
    else await deliverCharges(first, { ...key, charges: [{ ...key, id }] });
    const refund = newRefund({ seen: 10n, ceiling: 10n });
    expect(await lockRefund(second, refund)).toEqual({ outcome: "locked" });
  });

  it("are not begun on an old sum", async () => {
    await charge(first, 0n);
    expect(await lockRefund(first, newRefund())).toEqual({ outcome: "busy" });
    expect(await readChannel(first, key)).toMatchObject({ isRefunding: false });
  });

  async function begin(parts: Partial<NewRefund>) {
    names += 1;
    const channelId = word(names);
    await openChannel(first, { ...key, channelId, config, totalClaimed: 0n });
    return lockRefund(first, newRefund({ channelId, ...parts }));
  }

  it("refunds of channels that bought nothing leave half of an hour's to those that did", async () => {
    const unpaid = (signer: number) => begin({ signer: account(signer), isPaidFor: false });
    for (const signer of [11, 12, 13]) expect(await unpaid(signer)).toEqual({ outcome: "locked" });
    expect(await unpaid(14)).toEqual({ outcome: "limited", retryAfterMs: 3_600_000 });
    for (const signer of [15, 16]) {
      expect(await begin({ signer: account(signer) })).toEqual({ outcome: "locked" });
    }
    expect(await begin({ signer: account(17) })).toMatchObject({ outcome: "limited" });
  });

  it("are limited by signer in a day, and by network in an hour", async () => {
    for (let count = 0; count < 3; count += 1) {
      expect(await begin({})).toEqual({ outcome: "locked" });
      shared.wait(1_000);
    }
    const full = await begin({});
    expect(full).toEqual({ outcome: "limited", retryAfterMs: 86_400_000 - 3_000 });
    expect(await begin({ signer: account(8) })).toEqual({ outcome: "locked" });
    expect(await begin({ signer: account(9) })).toEqual({ outcome: "locked" });
    const another = await begin({ signer: account(10) });
    expect(another).toEqual({ outcome: "limited", retryAfterMs: 3_600_000 - 3_000 });
    shared.wait(3_600_000);
    expect(await begin({ signer: account(10) })).toEqual({ outcome: "locked" });
    expect(await begin({})).toMatchObject({ outcome: "limited" });
    shared.wait(86_400_000);
    expect(await begin({})).toEqual({ outcome: "locked" });
  });

  it("of a clock that was far ahead are no part of a limit", async () => {
    const year = 365 * 86_400_000;
    shared.wait(year);
    for (const signer of [7, 7, 7, 8, 9]) await begin({ signer: account(signer) });
    expect(await begin({ signer: account(7) })).toMatchObject({ outcome: "limited" });
    shared.wait(-year);
    expect(await begin({ signer: account(7) })).toEqual({ outcome: "locked" });
  });

  it("are sent once, and again by another transaction", async () => {
    await lockRefund(first, newRefund());
    const [locked] = await findOpenRefunds(first, { ...key, limit: 10 });
    if (locked === undefined) throw new Error("None is open.");
    const send = (refund: typeof locked, transactionId: string, nonce = 0n) =>
      first.write((transaction) =>
        recordRefundSent(first, transaction, {
          refund,
          signed: { nonce, amount: 900n, transactionId },
        }),
      );
    await send(locked, "one");
    await expect(send(locked, "two")).rejects.toThrow("moved meanwhile");
    // It was about to be given up, as unsent.
    expect(await endRefund(second, locked, { state: "failed", reason: "late" })).toBe(false);
    const [sent] = await findOpenRefunds(second, { ...key, limit: 10 });
    if (sent === undefined) throw new Error("None is open.");
    expect(sent).toMatchObject({
      state: "sent",
      signed: { nonce: 0n, amount: 900n, transactionId: "one" },
      transaction: { state: "gone" },
    });
    await send(sent, "again");
    await expect(send(sent, "twice")).rejects.toThrow("moved meanwhile");
    const [resent] = await findOpenRefunds(second, { ...key, limit: 10 });
    if (resent === undefined) throw new Error("None is open.");
    await noteRefundEvent(first, resent, { hash, refunded: 300n });
    expect(await readRefund(first, resent.id)).toMatchObject({ event: { hash, refunded: 300n } });
    const last = await findLastRefund(first, key);
    if (last === undefined) throw new Error("None was begun.");
    const event = { hash, refunded: 900n };
    expect(await endRefund(second, last, { state: "done", event })).toBe(true);
    expect(await findLastRefund(first, key)).toMatchObject({ state: "done", event });
    expect(await findOpenRefunds(first, { ...key, limit: 10 })).toEqual([]);
    expect(await readChannel(first, key)).toMatchObject({ isRefunding: false });
  });
});
