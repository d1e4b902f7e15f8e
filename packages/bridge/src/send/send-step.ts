import { type Hash, type Hex, keccak256, type PublicClient, TransactionNotFoundError } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeAccount } from "../bridge-options.ts";
import { askChain } from "../chains/ask-chain.ts";
import type { Connection } from "../chains/connect.ts";
import { inOneLine } from "../chains/revert-reason.ts";
import type { ChainNode } from "../chains/witnesses.ts";
import type { Step } from "../quote/estimate-gas.ts";
import type { GasPrice } from "../quote/gas-price.ts";

/** A transaction to send: content, account and price. */
export interface SendStepOptions {
  connection: Connection;
  signer: BridgeAccount;
  chainId: number;
  step: Step;
  gas: bigint;
  gasPrice: GasPrice;
  /** On abort before the call of `onSigned`, nothing is sent, and the reason is thrown. */
  signal: AbortSignal | undefined;
  /** Awaited before any node gets the transaction; if it throws, nothing is sent. */
  onSigned: (signed: SignedStep) => void | Promise<void>;
}

/** A transaction that is about to be sent. */
export interface SignedStep {
  hash: Hash;
  transaction: Hex;
}

/**
 * Signs one transaction and sends it. A returned hash means that a node has it, or may have it.
 *
 * @throws BridgeError `signing_failed`, `rejected_by_node`, `rpc_unavailable`: it was not sent;
 * `outcome_unclear`: a host turned it away by its limits, and may have kept it
 */
export async function sendStep(options: SendStepOptions): Promise<Hash> {
  const { connection, signer, chainId, step, gas, gasPrice, signal } = options;
  const { client, nodes, broadcast } = connection;
  const nonce = await askChain(
    "the next nonce",
    client.getTransactionCount({ address: signer.address, blockTag: "pending" }),
  );
  signal?.throwIfAborted();
  const transaction = await sign(signer, { chainId, nonce, gas, ...step, ...gasPrice });
  signal?.throwIfAborted();
  const hash = keccak256(transaction);
  await options.onSigned({ hash, transaction });
  const result = await broadcast(transaction);
  if (result.outcome === "unsent") {
    const { cause } = result;
    throw new BridgeError("rpc_unavailable", "No RPC endpoint took the transaction", { cause });
  }
  if (result.outcome === "limited" && !alreadyKnown.test(result.details)) {
    // No wait for a block: the host would have to break its word for one to come.
    const text = `No RPC endpoint takes the transaction ${hash} now: ${inOneLine(result.details)}. One of them has read it, and may send it later`;
    throw new BridgeError("outcome_unclear", text, { hash });
  }
  if (result.outcome === "rejected" && !(await mayHave(nodes, hash, result.details))) {
    const text = `No RPC endpoint accepts the transaction ${hash}: ${inOneLine(result.details)}`;
    throw new BridgeError("rejected_by_node", text, { hash });
  }
  return hash;
}

/** Node errors for a known transaction: from an attempt whose answer was lost. */
export const alreadyKnown =
  /already\s*known|known transaction|already imported|already (exists )?in (the )?(mem)?pool/i;

/** Node errors for a fault on the way, or within: such an answer refuses nothing. */
const undecided = /time(d)?[\s-]*out|internal (server )?error|try again|temporar/i;

/**
 * Resolves to whether a node that objects may have the transaction already, or take it after all.
 */
async function mayHave(nodes: readonly ChainNode[], hash: Hash, details: string): Promise<boolean> {
  if (alreadyKnown.test(details) || undecided.test(details)) return true;
  const answers = await Promise.all(nodes.map(({ client }) => isUnknown(client, hash)));
  return !answers.every(Boolean);
}

type Signable = Parameters<BridgeAccount["signTransaction"]>[0];

async function sign(signer: BridgeAccount, transaction: Signable): Promise<Hex> {
  try {
    return await signer.signTransaction(transaction);
  } catch (cause) {
    throw new BridgeError("signing_failed", "The account did not sign", { cause });
  }
}

/** Resolves to whether a node says that it does not know a transaction. */
async function isUnknown(client: PublicClient, hash: Hash): Promise<boolean> {
  try {
    await client.getTransaction({ hash });
    return false;
  } catch (error) {
    return error instanceof TransactionNotFoundError;
  }
}
