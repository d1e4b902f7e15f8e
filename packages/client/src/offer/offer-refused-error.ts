import type { Address, Network } from "@coinslot/protocol";
import { PaymentError, type PaymentErrorCode } from "../payment-error.ts";

/** Reason code for one refused entry of an offer. */
export type RefusalCode = Extract<
  PaymentErrorCode,
  | "unsupported_offer"
  | "unknown_asset"
  | "asset_mismatch"
  | "challenge_in_use"
  | "over_budget"
  | "insufficient_funds"
  | "balance_unreadable"
>;

/** A refused entry of an offer, with the reason. */
export interface Refusal {
  code: RefusalCode;
  message: string;
  network: Network;
  asset: Address;
  payTo: Address;
  /** In the token's smallest unit. */
  amount: bigint;
}

// Ordered by progress: the further an entry came before it failed, the more useful its reason.
const byProgress: readonly RefusalCode[] = [
  "challenge_in_use",
  "over_budget",
  // An unreadable balance does not prove that the funds are missing.
  "balance_unreadable",
  "insufficient_funds",
  "asset_mismatch",
  "unknown_asset",
  "unsupported_offer",
];

/** No entry of an offer could be paid. Its code is that of the entry that came furthest. */
export class OfferRefusedError extends PaymentError {
  override readonly name = "OfferRefusedError";
  readonly refusals: readonly Refusal[];

  constructor(refusals: readonly Refusal[]) {
    const code = byProgress.find((each) => refusals.some((refusal) => refusal.code === each));
    const matching = refusals.filter((refusal) => refusal.code === code);
    const messages = new Set(matching.map((refusal) => refusal.message));
    super(
      code ?? "unsupported_offer",
      messages.size > 0
        ? [...messages].join("; ")
        : "The seller offers no way to pay that can be read",
    );
    this.refusals = refusals;
  }
}
