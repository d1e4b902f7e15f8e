import { RpcError, type RpcRequester } from "@coinslot/chain";
import { parseTransaction } from "viem";
import * as z from "zod";
import type { TransactionReceipt } from "../../evm/transaction-receipt.ts";
import { hexWord } from "../../evm/word.ts";
import type { GasBurn } from "../../ledger/payments/admit-code.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { Execution } from "../../schemes/scheme.ts";
import { gasBeforeCall } from "../relay/gas.ts";
import { readAuthorizationStates } from "./authorization-states.ts";

/**
 * More gas than a token uses to refuse an honest wallet's payment: proxy, signature check, cold
 * storage.
 */
const ordinaryFailureGas = 100_000n;
const balanceOfSelector = "0x70a08231";
const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform(BigInt);

/** Consequences of a transaction for one payer with code that moved no money. */
export interface VainTry {
  /**
   * Gas that the shared budget bills. None where another sender's transaction is known to stand
   * before ours, and the token refused ours with little gas. An observer of the mempool can do that
   * to an honest wallet, as to a key.
   */
  billedGas: bigint;
  /**
   * `undefined` where another sender's transaction moved the money, unless ours is known to stand
   * before that.
   */
  burn: GasBurn | undefined;
}

/**
 * Reads the consequences of a transaction for one payer with code that moved no money.
 *
 * The payer is not to blame where little gas was used. Nor where its authorization was used or
 * cancelled by then: an observer of the mempool may have executed it first. Nor where its balance
 * did not suffice, which makes a token revert early. Nor where no node returns these facts.
 */
export async function findBurn(options: {
  network: { rpc: RpcRequester };
  payment: OrderedPayment;
  sent: Broadcast;
  receipt: TransactionReceipt;
  /** The use of the authorization by another sender, up to the receipt's block. */
  use: Execution | undefined;
}): Promise<VainTry> {
  const { payment, sent, receipt, use } = options;
  const gas = receipt.gasUsed;
  const before = gasBeforeCall(parseTransaction(sent.raw).data ?? "0x");
  const isOrdinary = gas - before <= ordinaryFailureGas;
  const usedAt = use && placeOf(use, receipt);
  if (use?.outcome === "executed" && usedAt !== "behind") {
    return { billedGas: usedAt === "before" && isOrdinary ? 0n : gas, burn: undefined };
  }
  const { payer } = payment.payment.authorization;
  const isBlamed = !isOrdinary && (await couldHavePaid(options, usedAt === "behind"));
  return { billedGas: gas, burn: { payer, gas, isBlamed } };
}

/**
 * Place of an authorization's use beside the receipt's transaction. `undefined` where the node does
 * not return it. During a reorganisation two blocks have one number, and their orders say nothing
 * together.
 */
function placeOf(use: Execution, receipt: TransactionReceipt): "before" | "behind" | undefined {
  if (use.outcome === "unknown") return undefined;
  const block = use.outcome === "executed" ? use.inclusion : use;
  if (BigInt(block.blockNumber) < BigInt(receipt.blockNumber)) return "before";
  const [usedAt, triedAt] = [use.transactionIndex, receipt.transactionIndex];
  if (block.blockHash !== receipt.blockHash || usedAt === undefined || triedAt === undefined) {
    return undefined;
  }
  return usedAt > triedAt ? "behind" : "before";
}

/**
 * Resolves to whether the authorization was unused, and its payer had the money. That is at the end
 * of the receipt's block. Where it was used behind the receipt's transaction, it is at the
 * beginning.
 */
async function couldHavePaid(
  options: {
    network: { rpc: RpcRequester };
    payment: OrderedPayment;
    receipt: TransactionReceipt;
  },
  isUsedBehind: boolean,
): Promise<boolean> {
  const { network, payment, receipt } = options;
  const { authorization, value } = payment.payment;
  const minBlock = BigInt(receipt.blockNumber);
  const { rpc } = network;
  const { asset, payer } = authorization;
  const balanceOf = { to: asset, data: `${balanceOfSelector}${hexWord(payer)}` };
  const blockNumber = isUsedBehind ? minBlock - 1n : minBlock;
  const params = [balanceOf, `0x${blockNumber.toString(16)}`];
  try {
    const [states, balance] = await Promise.all([
      readAuthorizationStates({ rpc, payments: [payment.payment], blockNumber }),
      rpc.request({ method: "eth_call", params }, { minBlock }),
    ]);
    return states[0] === false && word.parse(balance) >= value;
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return false;
    throw error;
  }
}
