/** Meaning of a node's refusal of a transaction. */
export type SendError =
  /** The node has it already, in its pool or in a block. */
  | "already_known"
  /**
   * A transaction with this nonce is in a block: this one, an earlier form of it, or a foreign one.
   */
  | "nonce_too_low"
  /** Transactions with lower nonces are missing. */
  | "nonce_too_high"
  /** Another form is in the pool and pays nearly as much, or the pool wants more. */
  | "underpriced"
  /** The fee cap is under the base fee of the next block. */
  | "fee_too_low"
  /** The relayer cannot pay for the gas limit. */
  | "insufficient_funds"
  /** It can never fit into a block, or the pool takes none so large. */
  | "too_large"
  /** The node takes none at the moment: pool full, syncing, too many of one sender. */
  | "busy"
  /** The node will never take it: another type, chain or signature than it knows. */
  | "invalid"
  | "unknown";

/**
 * Wordings of refusals by node: geth, erigon, nethermind, besu, reth, anvil. The codes carry no
 * meaning: nearly all are -32000. The first rule that matches counts, so "replacement" stands
 * before "nonce".
 */
const rules: readonly [SendError, RegExp][] = [
  // geth, reth, anvil "already known"; nethermind "AlreadyKnown"; erigon "already known"; besu
  // "Known transaction".
  [
    "already_known",
    /already\s*known|known transaction|already imported|transaction already in (the )?(pool|mempool)|existing transaction with same hash|already exists in (the )?pool/i,
  ],
  // geth, erigon, reth "replacement transaction underpriced"; besu "Replacement transaction
  // underpriced"; nethermind "ReplacementNotAllowed"; erigon "could not replace existing tx"; geth,
  // reth "transaction underpriced".
  [
    "underpriced",
    /underpriced|replacement\s*not\s*allowed|could not replace existing|gas price too low to replace|fee\s*too\s*low\s*to\s*compete|below.{0,20}(pool|minimum|configured)|less than block'?s? min|tip.{0,20}(below|too low)|min(imum)? (gas price|tip)/i,
  ],
  // geth "max fee per gas less than block base fee"; anvil the same; nethermind "FeeTooLow"; besu
  // "gasPrice is less than the current BaseFee".
  [
    "fee_too_low",
    /less than (the )?(current |block )?base\s*fee|fee cap less than|feetoolow|max fee per gas (is )?(too low|less)|gas\s*price.{0,20}less than.{0,20}base/i,
  ],
  // geth, erigon, reth, anvil "insufficient funds for gas * price + value"; nethermind
  // "InsufficientFunds"; besu "Upfront cost exceeds account balance".
  [
    "insufficient_funds",
    /insufficient\s*(funds|balance)|upfront cost exceeds|not enough (funds|balance)|sender doesn'?t have enough funds/i,
  ],
  // geth, reth "nonce too low"; anvil "nonce too low"; nethermind "OldNonce"; besu "Nonce too low"
  // / "below sender account nonce"; erigon "nonce too low".
  [
    "nonce_too_low",
    /nonce\s*too\s*low|oldnonce|below (the )?(sender )?account nonce|nonce.{0,20}already (been )?used|nonce.{0,30}lower than/i,
  ],
  // nethermind "NonceGap"; besu "Transaction nonce is too distant"; reth, geth "nonce too high".
  [
    "nonce_too_high",
    /nonce\s*too\s*high|noncegap|nonce gap|nonce.{0,20}(too )?(distant|far)|exceeds.{0,20}account nonce|gapped.{0,5}nonce|queued transaction/i,
  ],
  // geth, reth "exceeds block gas limit"; anvil "intrinsic gas too high"; nethermind
  // "GasLimitExceeded"; besu "exceeds block gas limit"; EIP-7825 "exceeds maximum per-transaction";
  // geth "oversized data".
  [
    "too_large",
    /exceeds? (the )?(block|maximum|max|transaction|per.?transaction).{0,30}gas|gas\s*limit\s*(exceeded|too high|is too high)|intrinsic gas too high|oversized|gas limit cap|transaction.{0,20}too (large|big)|max(imum)? (initcode|code|data) size|request entity too large/i,
  ],
  // geth "txpool is full", "in-flight transaction limit reached"; nethermind "PoolFull"; erigon
  // "mempool is full".
  [
    "busy",
    /(pool|mempool)\s*(is )?(full|limit|overflow)|in-?flight transaction limit|too many|rate|limit reached|syncing|timeout|timed out|try again|temporar|internal error/i,
  ],
  [
    "invalid",
    /invalid (sender|signature|chain|transaction|tx)|not supported|unsupported|chain ?id|intrinsic gas too low|only replay-protected|rlp|decode|malformed|type not/i,
  ],
];

/** Classifies a node's error text about a transaction. */
export function classifySendError(details: string): SendError {
  return rules.find(([, wording]) => wording.test(details))?.[0] ?? "unknown";
}
