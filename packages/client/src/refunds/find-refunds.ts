import {
  type Address,
  eip3009Abi,
  type Hex,
  isSameAddress,
  type Network,
} from "@coinslot/protocol";
import { getAbiItem, isHash, type PublicClient } from "viem";
import type { ChainNode } from "../chain/chain-node.ts";
import { PaymentError } from "../payment-error.ts";
import { readOwnTransfer } from "./read-own-transfer.ts";
import { readRanges } from "./read-ranges.ts";
import { refundNonce } from "./refund-nonce.ts";

/** A payment whose refunds are searched: `PaymentTerms` is one. */
export interface RefundablePayment {
  network: Network;
  asset: Address;
  payer: Address;
  nonce: Hex;
  /** Unix seconds. */
  validBefore: number;
  /**
   * Hash of its transaction, as in the receipt: the search begins at its block. Without one that
   * the node knows, the search begins a day before `validBefore`.
   */
  transaction?: string | undefined;
}

/** A refund that the chain shows. */
export interface FoundRefund {
  /** The n-th of its payment, from 1. */
  n: number;
  /** Received by the payer, in the token's smallest unit. */
  amount: bigint;
  /** The account that paid it: the seller's float. */
  from: Address;
  transaction: Hex;
  blockNumber: bigint;
  /** Blocks on top of it when it was read. */
  confirmations: bigint;
}

/** Refunds of one payment, in the order of `n`. */
export interface FoundRefunds {
  refunds: FoundRefund[];
  /** Their sum. */
  refunded: bigint;
  /** The blocks that were read. */
  fromBlock: bigint;
  toBlock: bigint;
  /** False if the node allowed too few blocks at a time: there may be later refunds. */
  isComplete: boolean;
}

const authorizationUsed = getAbiItem({ abi: eip3009Abi, name: "AuthorizationUsed" });
const maxRefunds = 16;
/** Nodes bound the topics of a filter. */
const paymentsPerFilter = 8;
const usualWindowSeconds = 86_400;

/**
 * Finds the refunds of payments on one network, by the payer's own nodes: a refund's nonce follows
 * from its payment, so no word of the seller is needed. The token's logs name the account that used
 * the nonce, and its Transfer to the payer the amount. The first node that answers is believed.
 *
 * @returns the refunds of each payment, in the order of `payments`
 * @throws PaymentError `chain_unreadable` when no node answers
 */
export async function findRefundsOn(
  nodes: readonly ChainNode[],
  payments: readonly RefundablePayment[],
): Promise<FoundRefunds[]> {
  if (payments.length === 0) return [];
  for (const node of nodes) {
    try {
      return await searchByNode(node, payments);
    } catch {
      // Failover to the next endpoint.
    }
  }
  // An error of an RPC client repeats the URL, which may hold a key.
  const message = `No endpoint of ${payments[0]?.network} returned the logs of its token`;
  throw new PaymentError("chain_unreadable", message);
}

async function searchByNode(
  node: ChainNode,
  payments: readonly RefundablePayment[],
): Promise<FoundRefunds[]> {
  const head = await node.ask((client) => client.getBlockNumber({ cacheTime: 0 }));
  const found: FoundRefunds[] = [];
  for (let index = 0; index < payments.length; index += paymentsPerFilter) {
    const group = payments.slice(index, index + paymentsPerFilter);
    const begins = await Promise.all(group.map((payment) => findBegin(node, payment, head)));
    const [from = head] = begins.toSorted((a, b) => (a < b ? -1 : 1));
    found.push(...(await searchGroup(node, group, { from, to: head })));
  }
  return found;
}

async function searchGroup(
  node: ChainNode,
  payments: readonly RefundablePayment[],
  range: { from: bigint; to: bigint },
): Promise<FoundRefunds[]> {
  const byNonce = new Map(
    payments.flatMap((payment) =>
      Array.from({ length: maxRefunds }, (_, index) => {
        const n = index + 1;
        return [refundNonce(payment, n), { payment, n }] as const;
      }),
    ),
  );
  const address = [...new Set(payments.map(({ asset }) => asset))];
  const { items, readTo } = await readRanges(range, (fromBlock, toBlock) =>
    node.ask((client) =>
      readUses(client, { address, nonces: [...byNonce.keys()], fromBlock, toBlock }),
    ),
  );
  const refunds = new Map<RefundablePayment, FoundRefund[]>(payments.map((each) => [each, []]));
  for (const use of items) {
    const wanted = byNonce.get(use.nonce);
    if (wanted === undefined || !isSameAddress(wanted.payment.asset, use.asset)) continue;
    const receipt = await node.ask((client) =>
      client.getTransactionReceipt({ hash: use.transaction }),
    );
    const { asset, payer } = wanted.payment;
    const { authorizer, nonce } = use;
    const transfer = readOwnTransfer(receipt.logs, { asset, authorizer, nonce });
    if (transfer === undefined || !isSameAddress(transfer.to, payer)) continue;
    refunds.get(wanted.payment)?.push({
      n: wanted.n,
      amount: transfer.value,
      from: authorizer,
      transaction: use.transaction,
      blockNumber: receipt.blockNumber,
      confirmations: range.to > receipt.blockNumber ? range.to - receipt.blockNumber : 0n,
    });
  }
  return payments.map((payment) => {
    const own = (refunds.get(payment) ?? []).sort((a, b) => a.n - b.n);
    return {
      refunds: own,
      refunded: own.reduce((sum, { amount }) => sum + amount, 0n),
      fromBlock: range.from,
      toBlock: readTo,
      isComplete: readTo >= range.to,
    };
  });
}

interface Use {
  asset: Address;
  authorizer: Address;
  nonce: Hex;
  transaction: Hex;
}

async function readUses(
  client: PublicClient,
  filter: { address: Address[]; nonces: Hex[]; fromBlock: bigint; toBlock: bigint },
): Promise<Use[]> {
  const { address, nonces, fromBlock, toBlock } = filter;
  const logs = await client.getLogs({
    address,
    event: authorizationUsed,
    args: { nonce: nonces },
    fromBlock,
    toBlock,
    strict: true,
  });
  return logs.map(
    ({ address: asset, args: { authorizer, nonce }, transactionHash: transaction }) => ({
      asset,
      authorizer,
      nonce,
      transaction,
    }),
  );
}

/** The block of the payment's transaction, else the first one of the usual window. */
async function findBegin(
  node: ChainNode,
  payment: RefundablePayment,
  head: bigint,
): Promise<bigint> {
  const { transaction, validBefore } = payment;
  if (transaction !== undefined && isHash(transaction)) {
    const receipt = await node
      .ask((client) => client.getTransactionReceipt({ hash: transaction }))
      .catch(() => undefined);
    if (receipt !== undefined && receipt.blockNumber <= head) return receipt.blockNumber;
  }
  return findBlockAt(node, BigInt(validBefore - usualWindowSeconds), head);
}

/** The last block that is not younger than this time, in Unix seconds; 0 if all are. */
async function findBlockAt(node: ChainNode, time: bigint, head: bigint): Promise<bigint> {
  let low = 0n;
  let high = head;
  while (low < high) {
    const middle = (low + high + 1n) / 2n;
    const { timestamp } = await node.ask((client) => client.getBlock({ blockNumber: middle }));
    if (timestamp <= time) low = middle;
    else high = middle - 1n;
  }
  return low;
}
