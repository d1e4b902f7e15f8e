import { describe, expect, it } from "vitest";
import { classifySendError, type SendError } from "./send-error.ts";

/** Error texts of geth, erigon, nethermind, besu, reth and anvil. */
const wordings: readonly [SendError, readonly string[]][] = [
  [
    "already_known",
    [
      "already known",
      "AlreadyKnown",
      "Known transaction",
      "transaction already imported",
      "transaction already in the pool",
    ],
  ],
  [
    "underpriced",
    [
      "replacement transaction underpriced",
      "Replacement transaction underpriced",
      "ReplacementNotAllowed",
      "ReplacementNotAllowed, existing transaction has higher fee",
      "could not replace existing tx",
      "transaction underpriced",
      "transaction underpriced: tip needed 1000000000, tip permitted 1",
      "FeeTooLowToCompete",
    ],
  ],
  [
    "fee_too_low",
    [
      "max fee per gas less than block base fee",
      "max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7",
      "gasPrice is less than the current BaseFee",
      "FeeTooLow",
      "fee cap less than block base fee",
    ],
  ],
  [
    "insufficient_funds",
    [
      "insufficient funds for gas * price + value",
      "insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000",
      "Insufficient funds for gas * price + value",
      "InsufficientFunds, Account balance: 0",
      "Upfront cost exceeds account balance",
    ],
  ],
  [
    "nonce_too_low",
    [
      "nonce too low",
      "nonce too low: next nonce 5, tx nonce 4",
      "OldNonce",
      "Nonce too low",
      "Transaction nonce below sender account nonce",
    ],
  ],
  [
    "nonce_too_high",
    [
      "nonce too high",
      "NonceGap",
      "NonceGap, Future nonce",
      "Transaction nonce is too distant from current sender nonce",
    ],
  ],
  [
    "too_large",
    [
      "exceeds block gas limit",
      "intrinsic gas too high",
      "GasLimitExceeded",
      "Transaction gas limit exceeds block gas limit",
      "oversized data",
      "transaction gas limit too high",
    ],
  ],
  [
    "busy",
    [
      "txpool is full",
      "in-flight transaction limit reached for delegated accounts",
      "mempool is full",
      "node is syncing",
    ],
  ],
  [
    "invalid",
    [
      "invalid sender",
      "transaction type not supported",
      "only replay-protected (EIP-155) transactions allowed over RPC",
      "intrinsic gas too low",
      "rlp: expected List",
    ],
  ],
  ["unknown", ["", "something else went wrong"]],
];

describe("a node's error text", () => {
  it.each(wordings)("means %s", (meaning, said) => {
    expect(said.map((words) => [words, classifySendError(words)])).toEqual(
      said.map((words) => [words, meaning]),
    );
  });
});
