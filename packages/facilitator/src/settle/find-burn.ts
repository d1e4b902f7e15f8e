import { RpcError } from "@coinslot/chain";
import { parseTransaction } from "viem";
import * as z from "zod";
import type { GasBurn } from "../ledger/admit-code.ts";
import type { OrderedPayment } from "../ledger/find-orders.ts";
import type { Broadcast } from "../ledger/store-transaction.ts";
import { hexWord } from "../token/word.ts";
import { readAuthorizationStates } from "./authorization-states.ts";
import { gasBeforeCall } from "./gas.ts";
import type { SettlementNetwork } from "./settlement-context.ts";
import type { TransactionReceipt } from "./transaction-receipt.ts";

/** More than a token uses that refuses an honest wallet's payment: proxy, signature check, cold storage. */
const ordinaryFailureGas = 100_000n;
const balanceOfSelector = "0x70a08231";
const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform(BigInt);

/**
 * The gas that the code of a payer has burnt in a transaction of its own that moved no money; `undefined` where
 * that is not its doing. An authorization that was used or cancelled by then may have been executed first by an
 * observer of the mempool, and a balance that did not suffice makes a token revert early. Where no node tells
 * both, the payer is not blamed.
 */
export async function findBurn(options: {
  network: SettlementNetwork;
  payment: OrderedPayment;
  sent: Broadcast;
  receipt: TransactionReceipt;
}): Promise<GasBurn | undefined> {
  const { network, payment, sent, receipt } = options;
  const { authorization, value } = payment.payment;
  const gas = receipt.gasUsed;
  const before = gasBeforeCall(parseTransaction(sent.raw).data ?? "0x");
  if (gas - before <= ordinaryFailureGas) return undefined;
  const minBlock = BigInt(receipt.blockNumber);
  const { rpc } = network;
  const { asset, payer } = authorization;
  const balanceOf = { to: asset, data: `${balanceOfSelector}${hexWord(payer)}` };
  const params = [balanceOf, `0x${minBlock.toString(16)}`];
  try {
    const [states, balance] = await Promise.all([
      readAuthorizationStates({ rpc, authorizations: [authorization], blockNumber: minBlock }),
      rpc.request({ method: "eth_call", params }, { minBlock }),
    ]);
    const isUnused = states[0] === false;
    return isUnused && word.parse(balance) >= value ? { payer, gas } : undefined;
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}
