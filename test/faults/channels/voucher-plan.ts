import type { Random } from "../seeded-random.ts";

/** One purchase by a voucher, as the seed has it. */
export interface PlannedVoucher {
  number: number;
  /** Path of the bought resource; no two purchases share one. */
  path: string;
  method: "GET" | "POST";
  flow: "authorization" | "upfront";
  /** The buyer's `Idempotency-Key`. */
  key: string | undefined;
  /** Another request with the same voucher, sent at once: of the same resource, or of another. */
  twin: "none" | "same" | "other";
  /** Time after which the buyer hangs up its first request, in milliseconds. */
  hangsUpAfterMs: number | undefined;
  /** The handler fails the first request. */
  failsFirst: boolean;
}

/** The purchases of one channel, one after the other. */
export interface ChannelPlan {
  index: number;
  vouchers: readonly PlannedVoucher[];
  /** Its payer withdraws before this purchase; `undefined`: never. */
  withdrawsBefore: number | undefined;
  /** Share of the balance that it asks for, in percent. */
  withdrawsPercent: number;
}

/** Price of every purchase, in the token's smallest unit. */
export const price = 1_000n;
/** A request with this header is failed by its handler. No part of the purchase. */
export const failHeader = "x-fault-fail";
/** The resource of a twin that asks for another one. */
export const otherOffset = 10_000_000;

/** The amount that the handler charges for a resource: all, a part, or nothing. */
export function partOf(number: number, maximum: bigint): bigint {
  if (number % 19 === 0) return 0n;
  return number % 5 === 0 ? maximum / 4n : maximum;
}

/** The amounts that a purchase may be charged: in advance all of it, until it is lowered. */
export function amountsOf({ number, flow }: Pick<PlannedVoucher, "number" | "flow">): bigint[] {
  const part = partOf(number, price);
  return flow === "upfront" && part !== price ? [part, price] : [part];
}

/** Plans channels with as many purchases each. */
export function planChannels(options: {
  channels: number;
  vouchers: number;
  random: Random;
  /** Share of the channels whose payers withdraw. */
  hostileShare: number;
}): ChannelPlan[] {
  const { channels, vouchers, random, hostileShare } = options;
  const each = Math.ceil(vouchers / channels);
  return Array.from({ length: channels }, (_, index) => ({
    index,
    vouchers: Array.from({ length: each }, (_, place) =>
      planVoucher(1 + index * each + place, random),
    ),
    withdrawsBefore: random.chance(hostileShare) ? random.between(1, each - 1) : undefined,
    withdrawsPercent: random.chance(0.5) ? 100 : random.between(1, 99),
  }));
}

function planVoucher(number: number, random: Random): PlannedVoucher {
  const flow = random.chance(0.2) ? "upfront" : "authorization";
  return {
    number,
    flow,
    path: pathOf(number, flow),
    method: random.chance(0.3) ? "POST" : "GET",
    key: random.chance(0.5) ? `key of purchase ${number}`.padEnd(24, ".") : undefined,
    twin: random.chance(0.03) ? random.pick(["same", "other"]) : "none",
    hangsUpAfterMs: random.chance(0.05) ? random.between(2, 60) : undefined,
    failsFirst: random.chance(0.03),
  };
}

export function pathOf(number: number, flow: PlannedVoucher["flow"]): string {
  return flow === "upfront" ? `/upfront/${number}` : `/report/${number}`;
}
