import { createHash } from "node:crypto";
import type { Authorization, Challenge, Hex, WireName } from "@coinslot/protocol";
import type { PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Random } from "./seeded-random.ts";

/** A third party's or payer's action on a payment, besides the buyer's request. */
export type Interference =
  /** Nothing. */
  | "none"
  /** A third party submits the authorization to the chain. */
  | "submitted"
  /** The payer cancels the authorization. */
  | "cancelled"
  /** The payer spends the same money in another transfer. */
  | "drained";

/** One purchase of one buyer, as the seed has it. */
export interface PlannedPurchase {
  number: number;
  payer: PrivateKeyAccount;
  /** The way in which the buyer speaks of payment. */
  wire: WireName;
  /** Nonce of a payment by x402. By MPP the nonce follows from the challenge. */
  nonce: Hex;
  /** End of a payment by x402, in Unix seconds. By MPP the challenge has it. */
  validBefore: bigint;
  interference: Interference;
  flow: "authorization" | "upfront";
  /** Path of the bought resource; no two purchases share one. */
  path: string;
  /** The buyer's `Idempotency-Key`. */
  key: Hex | undefined;
  /** True if the buyer sends an `Idempotency-Key`. */
  hasKey: boolean;
  /** True if the buyer sends its first request twice at once. */
  isTwin: boolean;
  /** Time after which the buyer hangs up its first request, in milliseconds. */
  hangsUpAfterMs: number | undefined;
}

/** A purchase whose payment is signed. */
export interface Purchase extends PlannedPurchase {
  authorization: Authorization;
  signature: Hex;
  /** The challenge that a payment by MPP answers. */
  challenge: Challenge | undefined;
  /** The headers that pay for it. */
  headers: Readonly<Record<string, string>>;
  /** Headers of a stranger who has the authorization from the chain: it pays by x402 version 2. */
  strangerHeaders: Readonly<Record<string, string>>;
}

/** Price of every purchase, in the token's smallest unit. */
export const price = 1_000n;
/** Lifetime of a signed payment, in seconds: longer than any run. */
export const validitySeconds = 7_200;
/** The EIP-712 domain of the devnet's stablecoin. */
export const tokenDomain = { name: "USDT0", version: "1" } as const;

/** Returns whether a purchase's handler fails the first time that it runs. */
export function failsOnce({ number }: Pick<PlannedPurchase, "number">): boolean {
  return number % 50 === 7;
}

const payersOfTheHonest = 40;
const wires = ["x402v1", "x402v2", "mpp"] as const;
const interferences = ["submitted", "cancelled", "drained"] as const;

/**
 * Plans this many purchases, by all wires. Of twenty, one is submitted, cancelled or drained. Those
 * have payers of their own, so that no other balance depends on them.
 */
export function planPurchases(options: {
  count: number;
  random: Random;
  /** Unix milliseconds. */
  now: number;
}): PlannedPurchase[] {
  const { count, random, now } = options;
  const honest = Array.from({ length: payersOfTheHonest }, (_, index) =>
    payerOf(random, `honest ${index}`),
  );
  const validBefore = BigInt(Math.floor(now / 1000) + validitySeconds);
  return Array.from({ length: count }, (_, number) => {
    const interference = random.chance(0.05) ? random.pick(interferences) : "none";
    const own = honest[number % honest.length];
    const payer =
      interference === "none" && own !== undefined ? own : payerOf(random, `other ${number}`);
    return plan({ random, number, payer, interference, validBefore });
  });
}

function plan(
  options: Pick<PlannedPurchase, "number" | "payer" | "interference" | "validBefore"> & {
    random: Random;
  },
): PlannedPurchase {
  const { random, ...planned } = options;
  const { number } = planned;
  const flow = random.chance(0.1) ? "upfront" : "authorization";
  const hasKey = random.chance(0.6);
  return {
    ...planned,
    wire: random.pick(wires),
    nonce: digestOf(`${random.next()} nonce ${number}`),
    flow,
    path: `${flow === "upfront" ? "/upfront" : "/report"}/${number}`,
    key: hasKey ? digestOf(`${random.next()} key ${number}`) : undefined,
    hasKey,
    isTwin: random.chance(0.1),
    hangsUpAfterMs: random.chance(0.04) ? random.between(5, 400) : undefined,
  };
}

/** Key of the account that pays refunds. */
export function floatKeyOf(random: Random): Hex {
  return digestOf(`${random.fork("float").next()} float`);
}

function payerOf(random: Random, name: string): PrivateKeyAccount {
  return privateKeyToAccount(digestOf(`${random.fork(name).next()} ${name}`));
}

function digestOf(text: string): Hex {
  return `0x${createHash("sha256").update(text).digest("hex")}`;
}
