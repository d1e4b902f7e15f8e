import { describe, expect, it } from "vitest";
import type { Channel, LastCharge } from "../../ledger/channels/channel.ts";
import { admitVoucher, type PresentedRequest } from "./admit-voucher.ts";

const signature = `0x${"ab".repeat(65)}` as const;
const channelId = `0x${"11".repeat(32)}` as const;
const price = 10n;

/** A channel on which 100 were charged, with 1,000 that are secure. */
function channelWith(parts: Partial<Channel> = {}): Channel {
  return {
    network: "eip155:9745",
    contract: `0x${"40".repeat(20)}`,
    channelId,
    charged: 100n,
    voucher: { ceiling: 100n, signature },
    secure: 1_000n,
    lost: 0n,
    isRefunding: false,
    run: undefined,
    last: undefined,
    ...parts,
  };
}

const last: LastCharge = {
  owner: "first",
  runs: 1,
  id: "last",
  fingerprint: "GET /a",
  keyHash: undefined,
  amount: 10n,
  at: 1,
  isDelivered: true,
};

function admit(
  ceiling: bigint,
  channel: Partial<Channel> = {},
  parts: Partial<PresentedRequest> & { totalClaimed?: bigint; maxUnclaimed?: bigint } = {},
) {
  const { totalClaimed = 0n, maxUnclaimed = 10_000n, ...request } = parts;
  const voucher = { channelId, maxClaimableAmount: ceiling, signature };
  return admitVoucher(
    { voucher, price, fingerprint: "GET /a", ...request },
    { channel: channelWith(channel), totalClaimed, maxUnclaimed },
  );
}

const proof = { ceiling: 100n, signature };

describe("a voucher", () => {
  it("buys if its ceiling is what was charged and the price, exactly", () => {
    expect(admit(110n)).toEqual({ kind: "purchase", seen: 100n, base: 100n });
    for (const ceiling of [109n, 111n, 100n, 0n, 2n ** 128n - 1n]) {
      expect(admit(ceiling)).toEqual({ kind: "correct", charged: 100n, proof });
    }
  });

  it("begins at what the chain has paid, where that is more, and never at the buyer's number", () => {
    const unknown = { charged: 0n, voucher: undefined };
    expect(admit(310n, unknown, { totalClaimed: 300n })).toEqual({
      kind: "purchase",
      seen: 0n,
      base: 300n,
    });
    for (const ceiling of [10n, 300n, 510n]) {
      expect(admit(ceiling, unknown, { totalClaimed: 300n })).toEqual({
        kind: "correct",
        charged: 300n,
        proof: undefined,
      });
    }
  });

  it("a voucher of the last charge gets its answer again if that was not delivered, and is not charged", () => {
    const undelivered = { last: { ...last, isDelivered: false } };
    expect(admit(100n, undelivered)).toEqual({ kind: "repeat", chargeId: "last" });
    expect(admit(100n, { ...undelivered, isRefunding: true })).toMatchObject({ kind: "repeat" });
    expect(admit(100n, { last })).toMatchObject({ kind: "correct" });
    const another = { fingerprint: "GET /b" };
    expect(admit(100n, undelivered, another)).toMatchObject({ kind: "correct" });
  });

  it("a voucher of the last charge gets a kept answer under the same key alone", () => {
    const keyed = { last: { ...last, keyHash: "key" } };
    expect(admit(100n, keyed, { keyHash: "key" })).toMatchObject({ kind: "repeat" });
    expect(admit(100n, keyed, { keyHash: "other" })).toMatchObject({ kind: "correct" });
    expect(admit(100n, keyed)).toMatchObject({ kind: "correct" });
  });

  it("buys again after a run that charged nothing: its ceiling is the next one, too", () => {
    const free = { voucher: { ceiling: 110n, signature }, last: { ...last, amount: 0n } };
    expect(admit(110n, free)).toMatchObject({ kind: "purchase" });
  });

  it("may have a lower ceiling than the last one, which charged less than its price", () => {
    const less = { charged: 92n, voucher: { ceiling: 110n, signature }, last };
    expect(admit(102n, less)).toMatchObject({ kind: "purchase", seen: 92n });
  });

  it("is refused above what is secure, for an owing signer, and during a refund", () => {
    expect(admit(110n, { secure: 109n })).toEqual({ kind: "exceeds_balance" });
    expect(admit(110n, { secure: 110n })).toMatchObject({ kind: "purchase" });
    expect(admit(110n, { lost: 1n })).toEqual({ kind: "owing" });
    expect(admit(110n, { isRefunding: true })).toEqual({
      kind: "unavailable",
      because: "refunding",
    });
  });

  it("is refused where too much is unclaimed", () => {
    const refused = { kind: "unavailable", because: "unclaimed" };
    expect(admit(110n, {}, { maxUnclaimed: 109n })).toEqual(refused);
    expect(admit(110n, {}, { maxUnclaimed: 110n })).toMatchObject({ kind: "purchase" });
    expect(admit(110n, {}, { totalClaimed: 50n, maxUnclaimed: 60n })).toMatchObject({
      kind: "purchase",
    });
  });

  it("has a price", () => {
    expect(() => admit(100n, {}, { price: 0n })).toThrow(RangeError);
  });
});
