import { createHash } from "node:crypto";
import type { Devnet } from "@coinslot/devnet";
import {
  type Authorization,
  encodePaymentPayload,
  formatAuthorization,
  type Hex,
  headerName,
  type PaymentRequirements,
  transferTypedData,
} from "@coinslot/protocol";
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

/** One purchase of one buyer, signed before the run begins. */
export interface Purchase {
  number: number;
  payer: PrivateKeyAccount;
  authorization: Authorization;
  signature: Hex;
  interference: Interference;
  /** Path of the bought resource; no two purchases share one. */
  path: string;
  /** The headers that pay for it. */
  headers: Readonly<Record<string, string>>;
  /** True if the buyer sends an `Idempotency-Key`. */
  hasKey: boolean;
  /** True if the buyer sends its first request twice at once. */
  isTwin: boolean;
  /** True if the buyer hangs up its first request after this many milliseconds. */
  hangsUpAfterMs: number | undefined;
}

/** Price of every purchase, in the token's smallest unit. */
export const price = 1_000n;
/** Lifetime of a signed payment, in seconds: longer than any run. */
export const validitySeconds = 7_200;
/** The EIP-712 domain of the devnet's stablecoin. */
export const tokenDomain = { name: "USDT0", version: "1" } as const;

const payersOfTheHonest = 40;
const interferences = ["submitted", "cancelled", "drained"] as const;

/** The seller's price. */
function requirementsOf(devnet: Devnet, flow: "authorization" | "upfront"): PaymentRequirements {
  const extra = { ...tokenDomain, decimals: 6 };
  return {
    scheme: "exact",
    network: devnet.network,
    amount: price.toString(),
    asset: devnet.token,
    payTo: devnet.accounts.seller.address,
    maxTimeoutSeconds: validitySeconds,
    extra: flow === "upfront" ? { ...extra, paymentFlow: "upfront" } : extra,
  };
}

/**
 * Signs this many purchases. Of twenty, one is submitted, cancelled or drained. Those have payers
 * of their own, so that no other balance depends on them.
 */
export async function planPurchases(options: {
  devnet: Devnet;
  count: number;
  random: Random;
  /** Unix milliseconds. */
  now: number;
}): Promise<Purchase[]> {
  const { devnet, count, random, now } = options;
  const honest = Array.from({ length: payersOfTheHonest }, (_, index) =>
    payerOf(random, `honest ${index}`),
  );
  const purchases: Purchase[] = [];
  for (let number = 0; number < count; number += 1) {
    const interference = random.chance(0.05) ? random.pick(interferences) : "none";
    const own = honest[number % honest.length];
    const payer =
      interference === "none" && own !== undefined ? own : payerOf(random, `other ${number}`);
    purchases.push(await sign({ devnet, random, now, number, payer, interference }));
  }
  return purchases;
}

async function sign(options: {
  devnet: Devnet;
  random: Random;
  now: number;
  number: number;
  payer: PrivateKeyAccount;
  interference: Interference;
}): Promise<Purchase> {
  const { devnet, random, now, number, payer, interference } = options;
  const flow = random.chance(0.1) ? "upfront" : "authorization";
  const version = random.chance(0.25) ? 1 : 2;
  const hasKey = random.chance(0.6);
  const requirements = requirementsOf(devnet, flow);
  const authorization: Authorization = {
    from: payer.address,
    to: devnet.accounts.seller.address,
    value: price,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(now / 1000) + validitySeconds),
    nonce: digestOf(`${random.next()} nonce ${number}`),
  };
  const signature = await payer.signTypedData(
    transferTypedData({
      authorization,
      network: devnet.network,
      asset: devnet.token,
      domain: tokenDomain,
    }),
  );
  const payload = { signature, authorization: formatAuthorization(authorization) };
  const { scheme, network } = requirements;
  const paid =
    version === 1
      ? { [headerName.payment]: encodePaymentPayload({ x402Version: 1, scheme, network, payload }) }
      : {
          [headerName.paymentSignature]: encodePaymentPayload({
            x402Version: 2,
            payload,
            accepted: requirements,
          }),
        };
  const key = { [headerName.idempotencyKey]: digestOf(`${random.next()} key ${number}`) };
  return {
    number,
    payer,
    authorization,
    signature,
    interference,
    path: `${flow === "upfront" ? "/upfront" : "/report"}/${number}`,
    headers: hasKey ? { ...paid, ...key } : paid,
    hasKey,
    isTwin: random.chance(0.1),
    hangsUpAfterMs: random.chance(0.04) ? random.between(5, 400) : undefined,
  };
}

function payerOf(random: Random, name: string): PrivateKeyAccount {
  return privateKeyToAccount(digestOf(`${random.fork(name).next()} ${name}`));
}

function digestOf(text: string): Hex {
  return `0x${createHash("sha256").update(text).digest("hex")}`;
}
