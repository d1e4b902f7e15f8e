import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import {
  authorization,
  inclusion,
  network,
  order,
  payer,
  wish,
} from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { deliverPayment } from "../payments/deliver-payments.ts";
import { enqueuePayment } from "../payments/enqueue-payments.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import type { ReserveWish } from "../payments/reserve-request.ts";
import { recallRefunds } from "./move-refund.ts";
import { refundUndelivered } from "./refund-undelivered.ts";

const day = 86_400_000;
const year = 365 * day;
const limits = { maxPerPayerPerDay: 1_000, gasCost: 0n, automaticMaxPerDay: () => 10n ** 30n };
const promise = (includeAbandoned = false) => ({
  sold: {
    route: "GET /a",
    resource: "/a",
    wire: "x402v2" as const,
    refund: { afterSeconds: 1, includeAbandoned },
  },
});
const withoutPromise = { sold: { route: "GET /b", resource: "/b", wire: "x402v2" as const } };

async function reserve(ledger: LedgerContext, wanted: ReserveWish) {
  const reserved = await reservePayment(ledger, wanted);
  if (reserved.outcome !== "reserved" && reserved.outcome !== "resumed") {
    throw new Error(reserved.outcome);
  }
  return reserved.token;
}

/** Reserved, settled, and held by its request. */
async function sell(ledger: LedgerContext, wanted: ReserveWish) {
  const token = await reserve(ledger, wanted);
  const { payer } = wanted.id;
  const queued = await enqueuePayment(ledger, { token, payer, order });
  if (queued === undefined) throw new Error("The reservation is lost");
  await recordOutcomes(ledger, [{ confirmed: { ids: [queued.id], inclusion } }]);
  return { id: queued.id, token };
}

const release = (ledger: LedgerContext, token: string, isAbandoned: boolean) =>
  releasePayment(ledger, { token, payer, countsAgainstPayer: false, hasRun: true, isAbandoned });

const recall = (ledger: LedgerContext) => {
  const now = ledger.now();
  const bounds = { latest: now + day, latestFrom: now + day, latestDue: now + 31 * day };
  return recallRefunds(ledger, { ...bounds, now });
};

describe.each(engines)("refunds of undelivered payments on %s", (engine) => {
  const { join, wait, read } = ledgerForEachTest(engine, {
    releaseLimit: { count: 1_000, windowMs: 1_000 },
  });

  it("keep the promise of the route that sold it last, and no other one's", async () => {
    const ledger = await join("one");
    const id = authorization();
    // The buyer leaves before anything moves, and pays another route with the same authorization.
    await release(ledger, await reserve(ledger, wish({ id, ...promise(true) })), true);
    const sold = await sell(ledger, wish({ id, fingerprint: "GET /b", ...withoutPromise }));
    await release(ledger, sold.token, true);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
  });

  it("leave a buyer alone that has left once, though the seller fails at its return", async () => {
    const ledger = await join("one");
    const wanted = wish(promise());
    const { token } = await sell(ledger, wanted);
    await release(ledger, token, true);
    await release(ledger, await reserve(ledger, wanted), false);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
  });

  it("begin for a sale on its own time, not on that of an earlier reservation", async () => {
    const ledger = await join("one");
    const wanted = wish(promise());
    await release(ledger, await reserve(ledger, wanted), true);
    wait(2_000);
    const { token, id } = await sell(ledger, wanted);
    await release(ledger, token, false);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toMatchObject([{ payment_id: id }]);
  });

  it("begin for a sale by a clock that was behind on the time of its outcome", async () => {
    const ledger = await join("one");
    wait(-10_000);
    const token = await reserve(ledger, wish(promise()));
    const queued = await enqueuePayment(ledger, { token, payer, order });
    wait(10_000);
    await recordOutcomes(ledger, [{ confirmed: { ids: [queued?.id ?? ""], inclusion } }]);
    await release(ledger, token, false);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toMatchObject([{ payment_id: queued?.id }]);
  });

  it("are found among many that were delivered, at once", async () => {
    const ledger = await join("one");
    for (let index = 0; index < 120; index += 1) {
      const { token } = await sell(ledger, wish(promise()));
      await deliverPayment(ledger, token);
    }
    const { token, id } = await sell(ledger, wish(promise()));
    await release(ledger, token, false);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toMatchObject([{ payment_id: id }]);
    expect(await read(sql`select * from refundable_payments`)).toEqual([]);
  });

  it("begin although the ledger cannot decide on another payment", async () => {
    const ledger = await join("one");
    const broken = await sell(ledger, wish(promise()));
    const { token, id } = await sell(ledger, wish(promise()));
    await release(ledger, broken.token, false);
    await release(ledger, token, false);
    await read(sql`update payments set value = 'NaN' where id = ${broken.id}`);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toMatchObject([{ payment_id: id }]);
  });

  it.each([
    ["of a payer", { maxPerPayerPerDay: 1 }],
    ["of all payers together", { automaticMaxPerDay: () => 10n }],
  ])("are no part of a day's limit %s before their own day", async (_, limit) => {
    const ledger = await join("one");
    const begin = async () => {
      const { token } = await sell(ledger, wish(promise()));
      await release(ledger, token, false);
      wait(2_000);
      return refundUndelivered(ledger, { ...limits, ...limit });
    };
    wait(year);
    expect(await begin()).toHaveLength(1);
    // The clock was far ahead, and is put back.
    wait(-year);
    expect(await begin()).toHaveLength(1);
    expect(await begin()).toEqual([]);
  });

  it("begin soon after a clock that was far ahead is put back", async () => {
    const ledger = await join("one");
    const held = await sell(ledger, wish(promise()));
    expect(await recall(ledger)).toBe(0);
    wait(year);
    // Its request holds it: it is looked at again.
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    const later = await sell(ledger, wish(promise()));
    wait(-year);
    for (const { token } of [held, later]) await release(ledger, token, false);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    expect(await recall(ledger)).toBe(2);
    expect(await recall(ledger)).toBe(0);
    // Each has its whole time from now on.
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    wait(2_000);
    const begun = await refundUndelivered(ledger, limits);
    expect(begun.map(({ payment_id }) => payment_id).sort()).toEqual([held.id, later.id].sort());
  });

  it("are not recalled within their route's delay, however long it is", async () => {
    const ledger = await join("one");
    for (const afterSeconds of [(29 * day) / 1_000, (2 * year) / 1_000]) {
      const sold = { ...promise().sold, refund: { afterSeconds, includeAbandoned: false } };
      await sell(ledger, wish({ sold }));
    }
    expect(await recall(ledger)).toBe(0);
  });

  it("begin not before their time, though a clock was far behind for a moment", async () => {
    const ledger = await join("one");
    const { token, id } = await sell(ledger, wish(promise()));
    await release(ledger, token, false);
    const soldAt = ledger.now();
    wait(-3 * day);
    await recall(ledger);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    wait(3 * day);
    expect(await refundUndelivered(ledger, limits)).toEqual([]);
    expect(await read(sql`select queued_at from payments`)).toMatchObject([{ queued_at: soldAt }]);
    wait(2_000);
    expect(await refundUndelivered(ledger, limits)).toMatchObject([{ payment_id: id }]);
  });

  it("begin up to the limit of all payers together in a day, and go on the day after", async () => {
    const ledger = await join("one");
    wait(day - (ledger.now() % day));
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      const { token, id } = await sell(ledger, wish(promise()));
      await release(ledger, token, false);
      ids.push(id);
    }
    wait(2_000);
    const value = 10n;
    const reached: unknown[] = [];
    const apply = (most: bigint) =>
      refundUndelivered(
        ledger,
        { ...limits, automaticMaxPerDay: () => most },
        { onLimit: (limited) => reached.push(limited) },
      );
    // One unit short of the third.
    expect(await apply(3n * value - 1n)).toHaveLength(2);
    expect(reached).toHaveLength(2);
    expect(reached[0]).toMatchObject({ network, maxPerDay: 3n * value - 1n });
    const [first] = await read(sql`select id from refunds order by id limit 1`);
    // A refund that came to nothing counts no longer.
    await read(
      sql`update refunds set state = 'void' where id = ${z.object({ id: z.string() }).parse(first).id}`,
    );
    expect(await apply(3n * value)).toEqual([]);
    wait(day);
    expect(await apply(value)).toHaveLength(1);
    expect(await apply(value)).toEqual([]);
    wait(day);
    expect((await apply(value)).map(({ payment_id }) => payment_id)).toEqual([
      expect.toSatisfy((id: string) => ids.includes(id)),
    ]);
  });
});
