import { parseTransaction } from "viem";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementNetwork } from "../context.ts";
import type { Fees } from "./fee-quote.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import { newestForm, type TrackedTransaction } from "./relayer-state.ts";
import { feesOf, fillerGas, signBroadcast } from "./sign-broadcast.ts";

/**
 * Signs a form of an open transaction that pays more. It makes the same calls. A `filler` is a
 * transfer of nothing to the relayer itself. It uses up a nonce whose transaction no node accepts.
 *
 * @returns `undefined` when that would cost more than the cap allows.
 */
export async function signReplacement(options: {
  network: SettlementNetwork;
  signer: RelayerSigner;
  transaction: TrackedTransaction;
  content: Broadcast["content"];
}): Promise<Broadcast | undefined> {
  const { network, signer, transaction, content } = options;
  const newest = newestForm(transaction);
  const fees: Fees | undefined = await network.fees.raise(feesOf(newest));
  if (fees === undefined) return undefined;
  const common = { signer, chainId: network.chainId, nonce: transaction.nonce, fees };
  if (content === "filler" || newest.content === "filler") {
    const to = signer.address;
    return signBroadcast({ ...common, to, data: "0x", gasLimit: fillerGas, content: "filler" });
  }
  const { to, data = "0x" } = parseTransaction(newest.raw);
  if (!to) throw new TypeError(`Transaction ${transaction.id} has no call`);
  const { gasLimit } = transaction;
  return signBroadcast({ ...common, to, data, gasLimit, content: newest.content });
}
