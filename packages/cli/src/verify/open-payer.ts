import {
  type Authorization,
  formatAuthorization,
  type Hex,
  isSameAddress,
  type PaymentRequirements,
  toLowerHex,
  transferTypedData,
} from "@coinslot/protocol";
import { bytesToHex, type LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { type Plan, termsKey } from "./make-plan.ts";
import { NotCheckedError } from "./seller-error.ts";
import type { Way, WireName } from "./way.ts";

/** Longest validity of a signature, in seconds: also where an offer asks for more. */
const maxValiditySeconds = 3600;

/** A signed payment, and what became of it. */
export interface SignedPayment {
  wire: WireName;
  requirements: PaymentRequirements;
  authorization: Authorization;
  signature: Hex;
  headers: (readonly [name: string, value: string])[];
  /** True once a request with it was answered by 2xx or 3xx. */
  isServed: boolean;
  /** True if its check has reported already that it was charged. */
  isReported: boolean;
}

/** Signs payments within the plan. */
export interface Payer {
  /** All payments that may have cost something, in their order. */
  payments: readonly SignedPayment[];
  /**
   * Signs a payment of the plan.
   *
   * @param options.lessBy units that are missing in it
   * @throws NotCheckedError beyond the plan, or when the offer has changed since
   */
  pay(way: Way, path: string, options?: { lessBy: bigint }): Promise<SignedPayment>;
  /** Signs a transfer of the payer to itself in place of the payment: it costs nothing. */
  payItself(way: Way): Promise<SignedPayment>;
  /** Signs by a new key, in its own name or in the payer's: it costs nothing. */
  forge(way: Way, inName: "payer" | "its own"): Promise<SignedPayment>;
}

/** Opens a payer that counts its payments. */
export function openPayer(options: {
  account: LocalAccount;
  plan: Plan;
  /** Unix milliseconds. */
  now(): number;
  /** Called before a payment is handed out. */
  onPayment(payment: SignedPayment, index: number): void;
}): Payer {
  const { account, plan, now, onPayment } = options;
  const payments: SignedPayment[] = [];
  let total = 0n;
  let count = 0;

  function draft(way: Way, payer: string, changes: Partial<Authorization> = {}): Authorization {
    const { amount, payTo, maxTimeoutSeconds } = way.requirements;
    const nowSeconds = Math.floor(now() / 1000);
    const asked = way.bound?.validBefore ?? nowSeconds + maxTimeoutSeconds;
    return {
      from: toLowerHex(`0x${payer.slice(2)}`),
      to: toLowerHex(payTo),
      value: BigInt(amount),
      validAfter: 0n,
      validBefore: BigInt(Math.min(asked, nowSeconds + maxValiditySeconds)),
      nonce: way.bound?.nonce ?? bytesToHex(crypto.getRandomValues(new Uint8Array(32))),
      ...changes,
    };
  }

  async function sign(
    way: Way,
    signer: LocalAccount,
    authorization: Authorization,
  ): Promise<SignedPayment> {
    const { token } = plan;
    if (token === undefined) throw new NotCheckedError(plan.reason);
    const { network, address, name, version } = token;
    const domain = { name, version };
    const typed = transferTypedData({ authorization, network, asset: address, domain });
    const signature = await signer.signTypedData(typed);
    return {
      wire: way.wire,
      requirements: way.requirements,
      authorization,
      signature,
      headers: way.present({ signature, authorization: formatAuthorization(authorization) }),
      isServed: false,
      isReported: false,
    };
  }

  return {
    payments,
    async pay(way, path, { lessBy } = { lessBy: 0n }) {
      requirePlanned(plan, way, path);
      const value = BigInt(way.requirements.amount) - lessBy;
      if (count + 1 > plan.count || total + value > plan.total) {
        throw new NotCheckedError("the planned payments are used up");
      }
      // Counted before the signature: a wallet that fails may have signed.
      count += 1;
      total += value;
      const payment = await sign(way, account, draft(way, account.address, { value }));
      payments.push(payment);
      onPayment(payment, count);
      return payment;
    },
    payItself(way) {
      const to = toLowerHex(account.address);
      return sign(way, account, draft(way, account.address, { to }));
    },
    forge(way, inName) {
      const stranger = privateKeyToAccount(generatePrivateKey());
      const payer = inName === "payer" ? account.address : stranger.address;
      return sign(way, stranger, draft(way, payer));
    },
  };
}

/** The terms were agreed to as they stand in the plan, and in no other form. */
function requirePlanned(plan: Plan, { wire, requirements }: Way, path: string): void {
  const planned = plan.terms.get(termsKey(path, wire));
  if (planned === undefined) throw new NotCheckedError("no payment of this route is planned");
  const isSame =
    planned.network === requirements.network &&
    isSameAddress(planned.asset, requirements.asset) &&
    isSameAddress(planned.payTo, requirements.payTo) &&
    planned.amount === requirements.amount;
  if (!isSame) throw new NotCheckedError("price or recipient change from offer to offer");
}
