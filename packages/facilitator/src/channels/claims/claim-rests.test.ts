import type { Hex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { backOff, maxRestMs, type Rests } from "../back-off.ts";
import { isResting, restPaid } from "./claim-rests.ts";

const channelId: Hex = numberToHex(1, { size: 32 });
const account: Hex = numberToHex(2, { size: 20 });
const delaySeconds = 900;

/** A row of 2,000 as a node shows it. */
function rowOf({ isHidden = false }: { isHidden?: boolean } = {}) {
  const config = {
    payer: account,
    payerAuthorizer: account,
    receiver: account,
    receiverAuthorizer: account,
    token: account,
    withdrawDelay: delaySeconds,
    salt: channelId,
  };
  const state = {
    balance: 2_000n,
    totalClaimed: 0n,
    withdrawal: isHidden ? undefined : { amount: 2_000n, initiatedAt: 1 },
    refundNonce: 0n,
    block: { number: 1, hash: channelId },
    final: undefined,
    isMoving: true,
  };
  return { channel: { channelId }, config, state, totalClaimed: 2_000n };
}

/** Counts claims in one withdrawal delay, by looks of a second each. */
function countClaims(look: (now: number) => boolean): number {
  let claims = 0;
  for (let now = 0; now < delaySeconds * 1_000; now += 1_000) if (look(now)) claims += 1;
  return claims;
}

describe("the rests of a row that a node shows as unpaid", () => {
  it("allow fifty claims in a delay where the node hides its withdrawal in turn", () => {
    const rests: Rests<Hex> = new Map();
    let isFailed = false;
    const claims = countClaims((now) => {
      // It is hidden while the claim is found to have paid nothing.
      if (isFailed) backOff(rests, channelId, { now, maxMs: maxRestMs });
      isFailed = !isFailed && !isResting(rests, rowOf(), now);
      return isFailed;
    });
    expect(claims).toBeGreaterThan(40);
    expect(claims).toBeLessThanOrEqual(52);
  });

  it("allow fifty claims in a delay where the node has shown it as paid finally", () => {
    const memory = { rests: new Map(), paid: new Map([[channelId, 2_000n]]) };
    const claims = countClaims((now) => {
      const isClaimed = !isResting(memory.rests, rowOf(), now);
      if (isClaimed) restPaid(memory, [rowOf()], now);
      return isClaimed;
    });
    expect(claims).toBeGreaterThan(40);
    expect(claims).toBeLessThanOrEqual(52);
  });

  it("are long before its withdrawal is seen, and short from then on", () => {
    const rests: Rests<Hex> = new Map([[channelId, { until: 600_000, attempts: 8 }]]);
    expect(isResting(rests, rowOf({ isHidden: true }), 100_000)).toBe(true);
    expect(isResting(rests, rowOf(), 100_000)).toBe(true);
    expect(isResting(rests, rowOf(), 117_999)).toBe(true);
    expect(isResting(rests, rowOf(), 118_000)).toBe(false);
  });
});
