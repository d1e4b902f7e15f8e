import { toLowerHex } from "@coinslot/protocol";
import { bytesToHex, type Hex } from "viem";
import type { Shortfall } from "../chain/find-funds.ts";
import { refuse } from "../offer/choose-requirements.ts";
import type { Refusal } from "../offer/offer-refused-error.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { type BudgetBucket, inBucket } from "./spending-policy.ts";

/** Budget room reserved for a payment until there are funds for it. */
export interface BudgetHold {
  /** The shortfalls with room in the budget, in the same order. */
  shortfalls: readonly Shortfall[];
  /** Refusals of the others. */
  refusals: readonly Refusal[];
  /** Nonces of the bookings that the payment replaces. */
  nonces: readonly Hex[];
  /** Returns the unused room. */
  release(): Promise<void>;
  /** Counts the unused room as spent: funds were brought, at a cost, for nothing. */
  spend(): Promise<void>;
}

/**
 * After a crash, the room is free again after this time. A top-up takes minutes, and may ask a
 * person.
 */
const heldSeconds = 3_600;

/**
 * Books room for a payment that cannot be signed yet. Otherwise a top-up would bring funds for a
 * payment that the budget refuses, now or because of a concurrent payment. Only one of the
 * shortfalls is paid, so each bucket books its dearest alone. The nonces of these bookings are
 * never signed.
 *
 * @throws PaymentError when the budget cannot be read or kept. Then nothing is booked.
 */
export async function holdBudget(
  { account, budget, now, randomBytes }: PayingFetchContext,
  { shortfalls, host }: { shortfalls: readonly Shortfall[]; host: string },
): Promise<BudgetHold> {
  const held = new Map<BudgetBucket, Hex>();
  const affordable = new Set<Shortfall>();
  const refusals: Refusal[] = [];
  const payer = toLowerHex(account.address);
  const validBefore = Math.floor(now() / 1000) + heldSeconds;

  async function release(): Promise<void> {
    // Fail closed: a booking that cannot be released counts until it expires.
    for (const nonce of held.values()) await budget.release(nonce).catch(() => undefined);
  }

  async function spend(): Promise<void> {
    // A booking that cannot be settled counts until it expires.
    for (const nonce of held.values()) await budget.settle(nonce).catch(() => undefined);
  }

  try {
    for (const shortfall of [...shortfalls].sort(dearestFirst)) {
      const { candidate } = shortfall;
      const { asset, amount } = candidate;
      if (!held.has(asset.pot)) {
        const nonce = bytesToHex(randomBytes(32));
        const id = { network: asset.network, asset: toLowerHex(asset.address), payer, nonce };
        const booked = await budget.book({ id, validBefore, asset, amount, host });
        if (!booked.ok) {
          refusals.push(refuse(candidate, "over_budget", booked.message));
          continue;
        }
        held.set(asset.pot, nonce);
      }
      affordable.add(shortfall);
    }
  } catch (error) {
    await release();
    throw error;
  }
  return {
    shortfalls: shortfalls.filter((each) => affordable.has(each)),
    refusals,
    nonces: [...held.values()],
    release,
    spend,
  };
}

function dearestFirst({ candidate: a }: Shortfall, { candidate: b }: Shortfall): number {
  return inBucket(b.asset, b.amount) > inBucket(a.asset, a.amount) ? 1 : -1;
}
