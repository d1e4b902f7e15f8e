import type { RpcRequester } from "@coinslot/chain";
import type {
  Address,
  Authorization,
  AuthorizationId,
  Hex,
  InvalidReason,
  Payment,
  PaymentKind,
  PaymentPayload,
  PaymentRequirements,
  ReadPayment,
} from "@coinslot/protocol";
import type { ReceiptLog } from "../evm/transaction-receipt.ts";
import type { Inclusion } from "../ledger/payments/ledger-payment.ts";
import type { TransferOrder } from "../ledger/payments/transfer-order.ts";
import type { TokenFacts } from "../token/token-facts.ts";
import type { SimulationResult } from "./simulation-result.ts";

/** A signed right to move money once, as it goes to the chain. A `Payment` is one. */
export interface Claim {
  kind: PaymentKind;
  id: AuthorizationId;
  authorization: Authorization;
  signature: Hex;
}

/** One call of a transaction. */
export interface BatchCall {
  target: Address;
  callData: Hex;
}

/**
 * The logs of one transaction about one claim. `executed`: used, and its exact Transfer is there.
 * `mismatch`: used, and no Transfer of its own is exact. `absent`: not used in this transaction.
 */
export type LogOutcome = "executed" | "mismatch" | "absent";

/**
 * The chain's events about one claim, from any sender. With the transaction's place in its block,
 * where the node returns it.
 */
export type Execution =
  /** Its exact Transfer stands in this block. */
  | { outcome: "executed"; inclusion: Inclusion; transactionIndex?: number | undefined }
  /** Used without its exact Transfer, or cancelled, in this block: it can never pay any more. */
  | {
      outcome: "spent";
      /** Used; else cancelled. */
      isUse: boolean;
      blockNumber: bigint;
      /** Where the node returns it. */
      blockHash?: Hex | undefined;
      transactionHash?: Hex | undefined;
      transactionIndex?: number | undefined;
    }
  /**
   * Used, and the node has no receipt of that: its block has left the chain, or comes there later.
   * `fault`: it has not returned a log and a receipt that can be read. `isUnsearched`: the fault is
   * that of older logs, and newer ones show nothing.
   */
  | { outcome: "unknown"; fault?: Error | undefined; isUnsearched?: boolean };

/**
 * Operations of one kind on the chain: the simulator's trial, the transaction's contents, and the
 * proof of the outcome. Queue, nonces, fees, depth and deadlines are the engine's and the same for
 * every kind. A buyer's payment is the first kind of operation.
 */
export interface OperationKind {
  readonly kind: PaymentKind;
  /** The ABI tuple from which the simulator contract builds its call, as hex digits. */
  encodeTrial(claim: Claim): string;
  /** Size of that tuple, at most, in bytes. */
  trialBytes(claim: Claim): number;
  /** The call that executes a claim; `undefined` where no calldata can. */
  compose(claim: Claim, facts: { payerHasCode: boolean }): BatchCall | undefined;
  /** The contract that `compose` calls. */
  targetOf(id: AuthorizationId): Address;
  /** Calldata of a claim whose payer has code, at most, in bytes. */
  maxCallBytes(claim: Claim): number;
  /** The call that asks whether an authorization is used or cancelled; it returns one word. */
  nonceStateCall(id: AuthorizationId): BatchCall;
  /** Reads that word; `undefined` where it is neither yes nor no. */
  isUsed(id: AuthorizationId, word: bigint): boolean | undefined;
  /** Outcomes in the logs of one transaction, in log order. One log proves at most one outcome. */
  readOutcomes<Item extends Claim>(
    logs: readonly ReceiptLog[],
    claims: readonly Item[],
  ): Map<Item, LogOutcome>;
  /**
   * The transfer that an authorization made in the logs of one transaction, whatever its amount;
   * `undefined` where it was not used there, or moved nothing.
   */
  readTransfer(
    logs: readonly ReceiptLog[],
    id: AuthorizationId,
  ): { to: Address; value: bigint } | undefined;
  /**
   * Executions and cancellations by any sender in some blocks. A claim without either is missing.
   * The search for each token begins at the lowest `fromBlock` of its own claims.
   *
   * @throws RpcError when the chain is unreachable, ZodError when it returns malformed data.
   */
  findExecutions<Item extends Claim>(options: {
    rpc: RpcRequester;
    claims: readonly Item[];
    fromBlock: (claim: Item) => bigint;
    toBlock: bigint;
  }): Promise<Map<Item, Execution>>;
  readonly reasons: OperationReasons;
}

/** Error codes on the wire for the failures of an operation of any kind. */
export interface OperationReasons {
  alreadyUsed: InvalidReason;
  insufficientBalance: InvalidReason;
  /** Its deadline has passed. */
  expired: InvalidReason;
  /** The trial fails, and nothing on the chain explains it. */
  trialFailed: InvalidReason;
  /** A transaction tried it, and it is not in the logs. */
  executionFailed: "invalid_exact_evm_transaction_failed";
  /** A transaction used it, and the money that moved differs from the signed transfer. */
  transferMismatch: "invalid_exact_evm_transfer_event_mismatch";
}

/** Services of the engine for explaining a refused trial. */
export interface DiagnosisTools {
  rpc: RpcRequester;
  readFacts: (asset: Address) => Promise<TokenFacts>;
}

/** Limits that the seller and the network set for one payment. */
export interface CheckOptions {
  /** Unix milliseconds. */
  now: number;
  /** Time granted to the handler before settling begins. */
  handlerTimeoutSeconds?: number | undefined;
  /** Longest usual time between two blocks of the network. */
  blockTimeSeconds?: number | undefined;
}

/** The right that a claim takes up in the ledger while its handler runs. */
export interface Admission {
  kind: PaymentKind;
  id: AuthorizationId;
  /** Reserved of the payer's balance, in the token's smallest unit. */
  value: bigint;
  /** Unix seconds: from then on no block can execute it. */
  validBefore: bigint;
  payTo: Address;
}

/**
 * A way that a buyer's money moves: from a payload to an operation. `verify/`, `simulation/`,
 * `ledger/` and `settle/` know this interface and `registry.ts`, and no scheme.
 */
export interface Scheme extends OperationKind {
  /** Reads a payload that is checked against requirements. Equal messages give the same payment. */
  read(payload: PaymentPayload, requirements: PaymentRequirements): ReadPayment;
  /** Checks amounts, recipient and times, without a key and without the chain. */
  check(payment: Payment, options: CheckOptions): InvalidReason | undefined;
  /** The EIP-712 digest that the payer signs. */
  digestOf(payment: Payment): Uint8Array;
  /**
   * Explains a trial that failed.
   *
   * @throws FacilitatorError when the chain is unreachable.
   */
  diagnose(
    payment: Payment,
    result: SimulationResult,
    tools: DiagnosisTools,
  ): Promise<InvalidReason>;
  /** The reservation for which the ledger decides before a handler runs. */
  admit(payment: Payment): Admission;
  /** The operation that the ledger queues once the handler has run. */
  commit(payment: Payment): TransferOrder;
  readonly reasons: OperationReasons & {
    /** The signature is not the payer's. */
    signature: InvalidReason;
    recipientMismatch: InvalidReason;
  };
}
