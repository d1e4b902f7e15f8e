import type { Hex } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { type ChooseOptions, chooseClaims } from "./choose-claims.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const settings = {
  mostAtRisk: 1_000_000n,
  claimAfterMs: 3_600_000,
  idleMs: 600_000,
  claimCost: 1_000n,
};
const now = 100_000_000;

interface Parts {
  charged?: bigint;
  claimed?: bigint;
  balance?: bigint;
  signer?: number;
  sinceMs?: number;
  withdrawDelay?: number;
  initiatedAt?: number;
  /** Of the withdrawal; default: all that is there. */
  withdrawn?: bigint;
  last?: { amount: bigint; agoMs: number; isDelivered: boolean };
}

/** A channel that was charged just now, and delivered. */
function due(id: number, parts: Parts = {}): ClaimableChannel {
  const { charged = 10_000n, claimed = 0n, balance = 10n ** 9n, signer = id } = parts;
  const { last = { amount: 1n, agoMs: 0, isDelivered: true }, initiatedAt } = parts;
  const { withdrawn = balance } = parts;
  const block = { number: 1, hash: word(1) };
  return {
    channel: {
      network: "eip155:9745",
      contract: account(0x4020),
      channelId: word(id),
      charged,
      voucher: { ceiling: charged + 5n, signature: "0xab" },
      secure: balance,
      lost: 0n,
      isRefunding: false,
      run: undefined,
      last: {
        id: "charge",
        fingerprint: "GET /",
        keyHash: undefined,
        amount: last.amount,
        at: now - last.agoMs,
        isDelivered: last.isDelivered,
        owner: undefined,
        runs: 1,
      },
    },
    config: {
      payer: account(1),
      payerAuthorizer: account(1_000 + signer),
      receiver: account(3),
      receiverAuthorizer: account(4),
      token: account(5),
      withdrawDelay: parts.withdrawDelay ?? 86_400,
      salt: word(0),
    },
    state: {
      balance,
      totalClaimed: claimed,
      withdrawal: initiatedAt === undefined ? undefined : { amount: withdrawn, initiatedAt },
      refundNonce: 0n,
      block,
      final: undefined,
      isMoving: true,
    },
    since: now - (parts.sinceMs ?? 0),
    refusal: undefined,
  };
}

const choose = (dues: readonly ClaimableChannel[], options: Partial<ChooseOptions> = {}) =>
  chooseClaims({
    dues,
    inFlight: new Map(),
    settings,
    now,
    time: now / 1_000,
    maxRows: 100,
    ...options,
  }).map(({ channel, totalClaimed }) => [Number(channel.channelId), totalClaimed]);

describe("claims that are due", () => {
  it("begin with withdrawals, the nearest deadline first", () => {
    const dues = [
      due(1, { charged: 2_000_000n }),
      due(2, { initiatedAt: 900 }),
      due(3, { initiatedAt: 800 }),
    ];
    expect(choose(dues).map(([id]) => id)).toEqual([3, 2, 1]);
  });

  it("leave out what is worth less than its gas, also at a withdrawal", () => {
    expect(choose([due(1, { charged: 999n, initiatedAt: 900 })])).toEqual([]);
    expect(choose([due(1, { charged: 1_000n, initiatedAt: 900 })])).toHaveLength(1);
  });

  it("are in no haste for a withdrawal that leaves what was charged", () => {
    const terms = { charged: 10_000n, balance: 50_000n, initiatedAt: 900 };
    expect(choose([due(1, { ...terms, withdrawn: 40_000n })])).toEqual([]);
    expect(choose([due(1, { ...terms, withdrawn: 40_001n })])).toEqual([[1, 10_000n]]);
  });

  it("count the channels of one signer together", () => {
    const halves = [due(1, { charged: 600_000n }), due(2, { charged: 600_000n })];
    expect(choose(halves)).toEqual([]);
    const ofOne = [1, 2].map((id) => due(id, { charged: 600_000n, signer: 9 }));
    expect(choose(ofOne)).toHaveLength(2);
  });

  it("wait an hour, and a third of a short delay", () => {
    expect(choose([due(1, { sinceMs: 3_599_000 })])).toEqual([]);
    expect(choose([due(1, { sinceMs: 3_600_000 })])).toHaveLength(1);
    expect(choose([due(1, { sinceMs: 300_000, withdrawDelay: 900 })])).toHaveLength(1);
  });

  it("claims of an idle channel, or in a full batch, are sent where they are worth it", () => {
    const idle = { agoMs: 600_000, amount: 1n, isDelivered: true };
    expect(choose([due(1, { charged: 20_000n, last: idle })])).toHaveLength(1);
    expect(choose([due(1, { charged: 19_999n, last: idle })])).toEqual([]);
    const many = [1, 2, 3].map((id) => due(id, { charged: 20_000n }));
    expect(choose(many, { maxRows: 3 })).toHaveLength(3);
    expect(choose(many, { maxRows: 4 })).toEqual([]);
  });

  it("ask for no more than the balance, and leave out what is on its way", () => {
    const poor = due(1, { charged: 9_000n, balance: 5_000n, initiatedAt: 900 });
    expect(choose([poor])).toEqual([[1, 5_000n]]);
    const inFlight = new Map([[word(1), 5_000n]]);
    expect(choose([poor], { inFlight })).toEqual([]);
    const more = due(1, { charged: 7_000n, initiatedAt: 900 });
    expect(choose([more], { inFlight })).toEqual([[1, 7_000n]]);
  });

  it("leave out what a refund's transaction claims, unless a payer withdraws it", () => {
    const inRefunds = new Map([[word(1), 10_000n]]);
    const old = { sinceMs: settings.claimAfterMs };
    expect(choose([due(1, old)])).toEqual([[1, 10_000n]]);
    expect(choose([due(1, old)], { inRefunds })).toEqual([]);
    // That transaction is in no haste, and may be in no block before the delay ends.
    const leaving = due(1, { ...old, initiatedAt: now / 1_000 });
    expect(choose([leaving], { inRefunds })).toEqual([[1, 10_000n]]);
    expect(choose([leaving], { inRefunds, inFlight: inRefunds })).toEqual([]);
  });

  it("wait for the last charge while its handler may lower it, for a while", () => {
    const last = { amount: 4_000n, agoMs: 599_000, isDelivered: false };
    const held = due(1, { initiatedAt: now / 1_000, last });
    expect(choose([held])).toEqual([[1, 6_000n]]);
    const old = due(1, { initiatedAt: now / 1_000, last: { ...last, agoMs: 600_000 } });
    expect(choose([old])).toEqual([[1, 10_000n]]);
    const short = due(1, {
      initiatedAt: now / 1_000,
      last: { ...last, agoMs: 225_000 },
      withdrawDelay: 900,
    });
    expect(choose([short])).toEqual([[1, 10_000n]]);
  });

  it("hold no charge back that a withdrawal would take with it", () => {
    const last = { amount: 2_000n, agoMs: 0, isDelivered: false };
    const initiatedAt = now / 1_000;
    const taken = due(1, { last, initiatedAt });
    const staying = due(2, { last, initiatedAt, withdrawn: 1n });
    const half = initiatedAt + 43_200;
    expect(choose([taken, staying], { time: half })).toEqual([[1, 8_000n]]);
    expect(choose([taken, staying], { time: half + 1 })).toEqual([[1, 10_000n]]);
    expect(choose([taken, staying], { time: half + 1, isAll: true })).toEqual([
      [1, 10_000n],
      [2, 8_000n],
    ]);
  });

  it("wait for a state of the chain", () => {
    expect(choose([{ ...due(1, { charged: 2_000_000n }), state: undefined }])).toEqual([]);
  });
});
