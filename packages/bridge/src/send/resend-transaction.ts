import {
  type Address,
  type Hash,
  type Hex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type TransactionSerialized,
} from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { askChain } from "../chains/ask-chain.ts";
import { inOneLine } from "../chains/revert-reason.ts";
import type { SourceChain } from "../chains/source-chain.ts";
import { requireWitnesses } from "../chains/witnesses.ts";
import { readReceipt } from "../track/read-receipt.ts";
import { alreadyKnown } from "./send-step.ts";

/** Grace time of a replaced nonce: endpoints may lag behind one another. */
const replacedAfterMs = 60_000;

/** Interval between broadcasts of refused bytes. */
const resendAfterMs = 30_000;

/** Sends a transaction again while it is in no block. */
export interface Resender {
  /**
   * Sends the same bytes again, which can move tokens once only. It detects when that cannot happen
   * any more.
   *
   * It throws BridgeError `replaced` when every node reports another transaction with its nonce for
   * a minute. None may have this one in a block. That takes two hosts at least. It throws
   * `outcome_unclear` when the nodes of one host alone report it, and `rpc_unavailable`.
   */
  resend(): Promise<void>;
  /** The nodes' reasons, while they refuse the bytes. */
  refusal(): string | undefined;
}

/** @throws BridgeError `not_a_transfer` if these are not the bytes of this hash, for this chain */
export async function createResender(
  { clock, replacedSince }: Pick<BridgeContext, "clock" | "replacedSince">,
  options: { source: SourceChain; hash: Hash; transaction: Hex },
): Promise<Resender> {
  const { source, hash, transaction } = options;
  const { sender: address, nonce } = await readSigned(options);
  /** True if a node has the bytes, or may have them. Refused ones may be accepted later. */
  let isSent = false;
  let refused: { details: string; at: number } | undefined;

  async function sendAgain(): Promise<void> {
    if (isSent || (refused && clock.now() - refused.at < resendAfterMs)) return;
    const result = await source.broadcast(transaction);
    const details = "details" in result ? result.details : undefined;
    const isKnown = details !== undefined && alreadyKnown.test(details);
    isSent = isKnown || result.outcome === "accepted" || result.outcome === "unknown";
    const isRefused = details !== undefined && !isKnown;
    refused = isRefused ? { details: inOneLine(details), at: clock.now() } : undefined;
  }

  /** Its own execution uses the nonce as well, and one node may deny it. */
  async function isMined(): Promise<boolean> {
    const asked = source.nodes.map(({ client }) => readReceipt(client, hash));
    const receipts = await Promise.all(asked);
    return receipts.some((receipt) => receipt !== undefined);
  }

  async function resend(): Promise<void> {
    await sendAgain();
    const asked = source.nodes.map(({ client }) => client.getTransactionCount({ address }));
    const next = await askChain("the nonce", Promise.all(asked));
    // One node that is behind, or one that is honest, is enough to go on.
    if (Math.min(...next) <= nonce || (await isMined())) {
      replacedSince.delete(hash);
      return;
    }
    const since = replacedSince.get(hash) ?? clock.now();
    replacedSince.set(hash, since);
    if (clock.now() - since < replacedAfterMs) return;
    const claim = `Another transaction of ${address} has replaced ${hash}`;
    requireWitnesses(source.nodes, { claim, hash });
    const text = `Another transaction of ${address} has replaced ${hash}: it has moved no token, and never will`;
    throw new BridgeError("replaced", text, { hash });
  }

  return { resend, refusal: () => refused?.details };
}

async function readSigned(options: {
  source: SourceChain;
  hash: Hash;
  transaction: Hex;
}): Promise<{ sender: Address; nonce: number }> {
  const { source, hash, transaction } = options;
  try {
    if (isSerialized(transaction) && keccak256(transaction) === hash.toLowerCase()) {
      const { nonce = 0, chainId } = parseTransaction(transaction);
      const sender = await recoverTransactionAddress({ serializedTransaction: transaction });
      // Nonces are per chain.
      if (chainId === source.chain.chainId) return { sender, nonce };
    }
  } catch {
    // Unreadable bytes are no transaction either.
  }
  const text = `The transaction that was given is not ${hash} on ${source.chain.name}`;
  throw new BridgeError("not_a_transfer", text, { hash });
}

/** The type byte of the transaction (EIP-2718), or the first byte of an RLP list. */
function isSerialized(transaction: Hex): transaction is TransactionSerialized {
  return /^0x(?:0[1-4]|[c-f])/i.test(transaction);
}
