import { toLowerHex } from "@coinslot/protocol";
import { describe, expect, it, vi } from "vitest";
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

/** A settled payment of a route that promises to give it back, and its reservation. */
async function sell(
  facilitator: CoinslotFacilitator,
  { pay }: SettlingDevnet,
  refund = { afterSeconds: 1, includeAbandoned: false },
) {
  const paid = await pay();
  const { value, validBefore, to } = paid.authorization;
  const reserved = await facilitator.reserve({
    id: idOf(paid),
    fingerprint: "GET /a",
    value,
    validBefore,
    payTo: toLowerHex(to),
    sold: { route: "GET /a", resource: "/a", wire: "x402v2", refund },
  });
  if (reserved.state !== "reserved") throw new Error(reserved.state);
  const { reservation } = reserved;
  expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  return reservation;
}

const undecided = async (facilitator: CoinslotFacilitator, { devnet }: SettlingDevnet) => {
  await devnet.mine(1);
  return (await facilitator.refunds.list()).refunds;
};

describe.each(enginesByDay("sqlite"))('refund: "undelivered" on %s', (engine) => {
  it(
    "gives back what the seller failed to deliver, and nothing else",
    async () => {
      const here = await begin(engine);
      const { start, balanceOf } = here;
      const facilitator = await start({
        ...withFloat,
        refunds: { privateKey: floatKey, automatic: { gasCost: 500n } },
      });
      const [failed, delivered, left, pardoned] = [
        await sell(facilitator, here),
        await sell(facilitator, here),
        await sell(facilitator, here),
        await sell(facilitator, here, { afterSeconds: 1, includeAbandoned: true }),
      ];
      await facilitator.release(failed, "handler_failed");
      await facilitator.deliver(delivered);
      await facilitator.release(left, "disconnected");
      await facilitator.release(pardoned, "disconnected");

      const refunds = await vi.waitFor(async () => {
        const found = await undecided(facilitator, here);
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
    "leaves a payer's refunds beyond the limit of a day, and small ones, to others",
    async () => {
      const here = await begin(engine);
      const { start, ledger: _ } = here;
      const facilitator = await start({
        ...withFloat,
        refunds: { privateKey: floatKey, automatic: { gasCost: 500n, maxPerPayerPerDay: 1 } },
      });
      const reservations = [await sell(facilitator, here), await sell(facilitator, here)];
      for (const each of reservations) await facilitator.release(each, "handler_failed");
      const [refund] = await vi.waitFor(async () => {
        const found = await undecided(facilitator, here);
        expect(found).toHaveLength(1);
        return found;
      }, patience);
      if (refund === undefined) throw new Error("unreachable");
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await undecided(facilitator, here)).toHaveLength(1);
      await facilitator.close();

      const dearer = await start({
        ...withFloat,
        refunds: { privateKey: floatKey, automatic: { gasCost: 501n } },
      });
      const small = await sell(dearer, here);
      await dearer.release(small, "handler_failed");
      const next = await sell(dearer, here);
      await dearer.release(next, "handler_failed");
      await vi.waitFor(async () => {
        await here.devnet.mine(1);
        const { payments } = await dearer.payments.list();
        expect(payments.every(({ finalAt }) => finalAt !== undefined)).toBe(true);
      }, patience);
      expect(await undecided(dearer, here)).toHaveLength(1);
    },
    timeout,
  );
});
