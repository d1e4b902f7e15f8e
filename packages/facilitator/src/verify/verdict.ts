import type {
  Address,
  BalanceReading,
  InvalidReason,
  Payment,
  VerifyResponse,
} from "@coinslot/protocol";

/** A payment that is refused, and why. */
export interface Refused {
  isValid: false;
  invalidReason: InvalidReason;
  /** The same in words; safe to show. */
  invalidMessage: string;
  /** Absent where the payload could not be read. */
  payer?: Address | undefined;
}

/** Verdict of the checks that ask no chain. */
export type LocalVerdict =
  | {
      isValid: true;
      payer: Address;
      payment: Payment;
      /**
       * True if the payer's own key has signed; slower than all other checks. Otherwise the payment
       * is valid only where the payer has code that accepts the signature. Only the chain knows
       * that.
       */
      isSignedByPayer: () => boolean;
    }
  | Refused;

/** Verdict of all checks. */
export type Verdict =
  | {
      isValid: true;
      payer: Address;
      payment: Payment;
      /** True if the payer is a contract, or delegates to one (EIP-7702). */
      payerHasCode: boolean;
      /** The balance on which a reservation is decided. */
      balance: BalanceReading;
      /** Of the token call by itself; `undefined` where the node shows none. */
      gasUsed?: bigint | undefined;
    }
  | Refused;

/** A verdict as it travels: without the payment, its signature and our measurements. */
export function toVerifyResponse(verdict: LocalVerdict | Verdict): VerifyResponse {
  if (verdict.isValid) return { isValid: true, payer: verdict.payer };
  const { invalidReason, invalidMessage, payer } = verdict;
  return {
    isValid: false,
    invalidReason,
    invalidMessage,
    ...(payer === undefined ? {} : { payer }),
  };
}
