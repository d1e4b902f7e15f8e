import {
  type Address,
  chainIdOf,
  findKnownChain,
  type Hex,
  type Network,
} from "@coinslot/protocol";
import { BaseError, type PublicClient } from "viem";
import type { ChainNode } from "../chain/chain-node.ts";
import { PaymentError } from "../payment-error.ts";
import type { PayingAccount } from "../sign/payer.ts";

const receiptTimeoutMs = 60_000;
const pollIntervalMs = 500;
/** Cap on the price of a unit of gas, tip included, where the chain is not known. */
const maxFeeElsewhere = 500n * 10n ** 9n;

/**
 * Sends a transaction of the payer, and waits until it is in a block. A node whose price for gas is
 * above the cap of the chain gets no signature: the tip is paid in full, whatever others ask.
 *
 * @throws PaymentError `signing_failed` when the account signs no transactions
 * @throws PaymentError `chain_unreadable` when no endpoint took it, or at no price within the cap;
 * when it failed, or is not in a block yet
 */
export async function sendTransaction(options: {
  nodes: readonly ChainNode[];
  network: Network;
  account: PayingAccount;
  to: Address;
  data: Hex;
}): Promise<Hex> {
  const { nodes, account } = options;
  const { signTransaction } = account;
  if (signTransaction === undefined) {
    const text = `The account signs no transactions. ${howToSend(options)}`;
    throw new PaymentError("signing_failed", text);
  }
  let last: unknown;
  for (const node of nodes) {
    let hash: Hex;
    try {
      hash = await node.ask(async (client) => {
        const serializedTransaction = await signTransaction(await draft(client, options));
        return client.sendRawTransaction({ serializedTransaction });
      });
    } catch (error) {
      last = error;
      continue;
    }
    await awaitReceipt(node, hash);
    return hash;
  }
  if (last instanceof PaymentError) throw last;
  const why = last instanceof BaseError ? last.shortMessage : "no endpoint answered";
  // The cause may repeat the URL of a node.
  throw new PaymentError("chain_unreadable", `The transaction was not sent: ${why}`);
}

type Sending = Parameters<typeof sendTransaction>[0];

/** The call, for another program of the same account. */
function howToSend({ account, network, to, data }: Sending): string {
  return `Send this one from ${account.address}, on ${network}, to ${to}: ${data}`;
}

async function draft(client: PublicClient, options: Sending) {
  const { account, network, to, data } = options;
  const from = account.address;
  const [nonce, gas, fees] = await Promise.all([
    client.getTransactionCount({ address: from, blockTag: "pending" }),
    client.estimateGas({ account: from, to, data }),
    client.estimateFeesPerGas(),
  ]);
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  const cap = findKnownChain(network)?.maxFeePerGas ?? maxFeeElsewhere;
  if (maxFeePerGas > cap) {
    const text = `The transaction was not sent: by the endpoint, gas costs ${maxFeePerGas} wei, above the cap of ${cap}. ${howToSend(options)}`;
    throw new PaymentError("chain_unreadable", text);
  }
  const chainId = chainIdOf(network);
  return {
    type: "eip1559",
    chainId,
    nonce,
    gas,
    to,
    data,
    maxFeePerGas,
    maxPriorityFeePerGas,
  } as const;
}

async function awaitReceipt(node: ChainNode, hash: Hex): Promise<void> {
  const status = await node
    .ask((client) =>
      client.waitForTransactionReceipt({
        hash,
        timeout: receiptTimeoutMs,
        pollingInterval: pollIntervalMs,
      }),
    )
    .then((receipt) => receipt.status)
    .catch(() => undefined);
  if (status === "success") return;
  const outcome = status === "reverted" ? "failed" : "is not in a block yet";
  throw new PaymentError("chain_unreadable", `The transaction ${hash} ${outcome}`);
}
