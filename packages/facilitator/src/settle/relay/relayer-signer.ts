import type { Address, Hex } from "@coinslot/protocol";

/** Transaction of a relayer: a call that sends no native coin. Fees in wei per unit of gas. */
export type RelayerTransaction = {
  chainId: number;
  nonce: number;
  to: Address;
  data: Hex;
  gas: bigint;
} & (
  | { type: "legacy"; gasPrice: bigint }
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
);

/** Signs transactions for one address. */
export interface RelayerSigner {
  address: Address;
  /** @throws SignerError where the key is elsewhere, and does not sign what was asked */
  signTransaction(transaction: RelayerTransaction): Promise<Hex>;
  /** Of a key elsewhere: its last failure, while the signer rests for it. */
  fault?(): SignerFault | undefined;
}

/** A failed signer rests: no transaction is planned for it until then. */
export interface SignerFault {
  error: SignerError;
  /** Milliseconds until it is asked again. */
  restsForMs: number;
}

/**
 * - `timeout`: no answer in time.
 * - `failed`: it threw.
 * - `wrong`: its answer is no signature of its address for this transaction. Nothing was sent.
 */
export type SignerErrorKind = "timeout" | "failed" | "wrong";

/** A key elsewhere did not sign. Nothing was stored, and nothing was sent. */
export class SignerError extends Error {
  override readonly name = "SignerError";
  readonly kind: SignerErrorKind;

  constructor(kind: SignerErrorKind, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.kind = kind;
  }
}
