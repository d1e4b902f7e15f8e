import { sleep } from "@coinslot/chain";
import {
  type Hash,
  type Hex,
  keccak256,
  type PublicClient,
  TransactionNotFoundError,
  type TransactionReceipt,
} from "viem";
import { askChain } from "./ask-chain.ts";
import { BridgeError } from "./bridge-error.ts";
import type { BridgeAccount, BridgeContext } from "./bridge-options.ts";
import type { Connection } from "./connect.ts";
import type { Step } from "./estimate-gas.ts";
import type { GasPrice } from "./gas-price.ts";
import { readReceipt } from "./read-receipt.ts";

/** What is sent, by whom, and at what price. */
export interface SendStepOptions {
  connection: Connection;
  signer: BridgeAccount;
  chainId: number;
  step: Step;
  gas: bigint;
  gasPrice: GasPrice;
  /** Is told the hash before any node is; what it returns is waited for, and if it throws, nothing is sent. */
  onSigned: (hash: Hash) => void | Promise<void>;
}

/**
 * Signs one transaction, sends it, and waits until it is mined. It may have reverted: its receipt says so.
 *
 * @throws BridgeError `signing_failed`, `rejected_by_node`, `rpc_unavailable`: it was not sent; `outcome_unclear`: it
 * may have been
 */
export async function sendStep(
  context: Pick<BridgeContext, "clock" | "receiptTimeoutMs">,
  options: SendStepOptions,
): Promise<TransactionReceipt> {
  const { connection, signer, chainId, step, gas, gasPrice } = options;
  const { client, broadcast } = connection;
  const nonce = await askChain(
    "the next nonce",
    client.getTransactionCount({ address: signer.address, blockTag: "pending" }),
  );
  const raw = await sign(signer, { chainId, nonce, gas, ...step, ...gasPrice });
  const hash = keccak256(raw);
  await options.onSigned(hash);
  const result = await broadcast(raw);
  if (result.outcome === "unsent") {
    const { cause } = result;
    throw new BridgeError("rpc_unavailable", "No RPC endpoint took the transaction", { cause });
  }
  // A node also refuses what it has already, from an earlier attempt whose answer was lost.
  if (result.outcome === "rejected" && (await isUnknown(client, hash))) {
    const text = `A node refuses the transaction ${hash}: ${result.details}`;
    throw new BridgeError("rejected_by_node", text, { hash });
  }
  return waitForReceipt(context, client, hash);
}

type Signable = Parameters<BridgeAccount["signTransaction"]>[0];

async function sign(signer: BridgeAccount, transaction: Signable): Promise<Hex> {
  try {
    return await signer.signTransaction(transaction);
  } catch (cause) {
    throw new BridgeError("signing_failed", "The account did not sign", { cause });
  }
}

/** Whether a node says that it does not know a transaction. */
async function isUnknown(client: PublicClient, hash: Hash): Promise<boolean> {
  try {
    await client.getTransaction({ hash });
    return false;
  } catch (error) {
    return error instanceof TransactionNotFoundError;
  }
}

async function waitForReceipt(
  { clock, receiptTimeoutMs }: Pick<BridgeContext, "clock" | "receiptTimeoutMs">,
  client: PublicClient,
  hash: Hash,
): Promise<TransactionReceipt> {
  const deadline = clock.now() + receiptTimeoutMs;
  while (true) {
    // Once it is sent, an endpoint that fails is no reason to lose sight of it.
    const receipt = await readReceipt(client, hash).catch(() => undefined);
    if (receipt !== undefined) return receipt;
    if (clock.now() >= deadline) {
      const text = `The transaction ${hash} was sent, and not mined in time: it still may be. Track it before sending again`;
      throw new BridgeError("outcome_unclear", text, { hash });
    }
    await sleep(clock, client.pollingInterval);
  }
}
