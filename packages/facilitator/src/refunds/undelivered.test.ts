import { systemClock } from "@coinslot/chain";
import { withDatabase } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import {
  becomes,
  floatAccount,
  floatKey,
  patience,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { idOf, settle } from "../testing/settling-actions.ts";
import { enginesByDay, type SettlingDevnet } from "../testing/settling-devnet.ts";

const begin = useRefundingDevnet();
const timeout = 120_000;

/** Longer than the sales of a test take: while a request holds a payment, it is not looked at. */
const afterSeconds = 900;

/** A settled payment of a route that promises to give it back, and its reservation. */
async function sell(
  facilitator: CoinslotFacilitator,
  { pay }: SettlingDevnet,
  { includeAbandoned } = { includeAbandoned: false },
) {
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 3_600);
  const paid = await pay({ authorization: { validBefore } });
  const { value, to } = paid.authorization;
  const reserved = await facilitator.reserve({
    id: idOf(paid),
    fingerprint: "GET /a",
    value,
    validBefore,
    payTo: toLowerHex(to),
    sold: {
      ...{ route: "GET /a", resource: "/a", wire: "x402v2" },
      refund: { afterSeconds, includeAbandoned },
    },
  });
  if (reserved.state !== "reserved") throw new Error(reserved.state);
  const { reservation } = reserved;
  expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  return reservation;
}

/** The payments on which the policy decides now. */
const due = ({ ledger }: SettlingDevnet, now: number) =>
  withDatabase(ledger.url, ({ read }) =>
    read(`select payment_id from refundable_payments where due_at <= ${now}`),
  );

const begun = async (facilitator: CoinslotFacilitator, { devnet }: SettlingDevnet) => {
  await devnet.mine(1);
  return (await facilitator.refunds.list()).refunds;
};

describe.each(enginesByDay("sqlite"))('refund: "undelivered" on %s', (engine) => {
  let aheadMs: number;
  const now = () => Date.now() + aheadMs;

  beforeEach(() => {
    aheadMs = 0;
  });

  it(
    "gives back what the seller failed to deliver, and nothing else",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf } = here;
      const facilitator = await start({
        ...withFloat,
        now,
        refunds: { privateKey: floatKey, automatic: { gasCost: 500n } },
      });
      const [failed, delivered, left, pardoned] = [
        await sell(facilitator, here),
        await sell(facilitator, here),
        await sell(facilitator, here),
        await sell(facilitator, here, { includeAbandoned: true }),
      ];
      await facilitator.release(failed, "handler_failed");
      await facilitator.deliver(delivered);
      await facilitator.release(left, "disconnected");
      await facilitator.release(pardoned, "disconnected");
      aheadMs = afterSeconds * 1_000;

      const refunds = await vi.waitFor(async () => {
        const found = await begun(facilitator, here);
        expect(found).toHaveLength(2);
        return found;
      }, patience);
      for (const refund of refunds) {
        expect(refund).toMatchObject({ origin: "undelivered" });
        await becomes(facilitator, here, refund, { state: "final" });
      }
      const nonces = await Promise.all(
        refunds.map(async ({ payment }) => {
          const found = await facilitator.payments.get(payment);
          return found?.authorization.nonce;
        }),
      );
      expect(nonces.sort()).toEqual([failed.id.nonce, pardoned.id.nonce].sort());
      expect(await balanceOf(floatAccount.address)).toBe(8_000n);
    },
    timeout,
  );

  it(
    "gives back soon after a clock that was far ahead is put back",
    async () => {
      const here = await begin(engine);
      let passedMs = 0;
      const facilitator = await here.start({
        ...withFloat,
        now,
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
        refunds: { privateKey: floatKey, automatic: { gasCost: 500n } },
        times: { refundMs: 50 },
      });
      await facilitator.release(await sell(facilitator, here), "handler_failed");
      const { id } = await sell(facilitator, here);
      const year = 365 * 86_400_000;
      await withDatabase(here.ledger.url, async ({ execute }) => {
        // Another route's delay is longer than that clock was ahead.
        const isSlow = `(select id from payments where nonce = '${id.nonce}')`;
        await execute(
          `update payments set refund_after = ${(2 * year) / 1_000} where id = ${isSlow}`,
        );
        await execute(
          `update refundable_payments set due_at = due_at + ${2 * year} where payment_id = ${isSlow}`,
        );
        await execute(
          `update refundable_payments set due_at = due_at + ${year} where payment_id <> ${isSlow}`,
        );
      });
      // As where the wall clock is set back.
      passedMs = 120_000;
      const soon = Date.now() + 2 * afterSeconds * 1_000;
      await vi.waitFor(async () => expect(await due(here, soon)).toHaveLength(1), patience);
      aheadMs = 2 * afterSeconds * 1_000;
      await vi.waitFor(async () => {
        expect(await begun(facilitator, here)).toHaveLength(1);
      }, patience);
    },
    timeout,
  );

  it(
    "leaves a payer's refunds beyond the limit of a day, and small ones, to others",
    async () => {
      const here = await begin(engine);
      const { start } = here;
      const facilitator = await start({
        ...withFloat,
        now,
        refunds: { privateKey: floatKey, automatic: { gasCost: 500n, maxPerPayerPerDay: 1 } },
      });
      const reservations = [await sell(facilitator, here), await sell(facilitator, here)];
      for (const each of reservations) await facilitator.release(each, "handler_failed");
      aheadMs = afterSeconds * 1_000;
      const [refund] = await vi.waitFor(async () => {
        const found = await begun(facilitator, here);
        expect(found).toHaveLength(1);
        return found;
      }, patience);
      if (refund === undefined) throw new Error("unreachable");
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await begun(facilitator, here)).toHaveLength(1);
      await facilitator.close();

      const dearer = await start({
        ...withFloat,
        now,
        refunds: { privateKey: floatKey, automatic: { gasCost: 501n } },
      });
      const small = await sell(dearer, here);
      await dearer.release(small, "handler_failed");
      const next = await sell(dearer, here);
      await dearer.release(next, "handler_failed");
      aheadMs *= 2;
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        const { payments } = await dearer.payments.list();
        expect(payments.every(({ finalAt }) => finalAt !== undefined)).toBe(true);
        expect(await due(here, now())).toEqual([]);
      }, patience);
      expect(await begun(dearer, here)).toHaveLength(1);
    },
    timeout,
  );
});

it(
  "a payment is given back though those that a wrong clock put off cannot be recalled",
  async () => {
    const here = await begin("sqlite");
    let [aheadMs, passedMs] = [0, 0];
    const facilitator = await here.start({
      ...withFloat,
      now: () => Date.now() + aheadMs,
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      refunds: { privateKey: floatKey, automatic: { gasCost: 500n } },
      times: { refundMs: 50 },
    });
    await facilitator.release(await sell(facilitator, here), "handler_failed");
    const { id } = await sell(facilitator, here);
    await withDatabase(here.ledger.url, async ({ execute }) => {
      const year = 365 * 86_400_000;
      await execute(
        `update refundable_payments set due_at = due_at + ${year}
        where payment_id = (select id from payments where nonce = '${id.nonce}')`,
      );
      await execute(
        `create trigger failing before update of due_at on refundable_payments
        when new.due_at < old.due_at begin select raise(abort, 'it takes too long'); end`,
      );
    });
    aheadMs = afterSeconds * 1_000;
    passedMs = aheadMs + 3_600_000;
    await vi.waitFor(async () => {
      expect(await begun(facilitator, here)).toHaveLength(1);
    }, patience);
  },
  timeout,
);
