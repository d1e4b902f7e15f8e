import { isRevert, RpcResponseError } from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import type { SettlementNetwork } from "../context.ts";
import type { Fees } from "../relay/fee-quote.ts";
import type { ComposedCall } from "./compose-call.ts";

/** `unknown`: a node was asked, and returned no result. */
export type SentTrial = "passes" | "reverts" | "unknown";

/**
 * Tries a transaction as it is about to be sent: same sender, price, gas and data. It stands on the
 * pending block where the node has one. Code that runs in it can distinguish the two by nothing but
 * the block itself.
 *
 * @throws RpcError when there is no node to ask.
 */
export async function tryAsSent(options: {
  network: SettlementNetwork;
  from: Address;
  call: ComposedCall;
  fees: Fees;
}): Promise<SentTrial> {
  const { network, from, call, fees } = options;
  const { to, data, gasLimit } = call;
  const object = { from, to, data, gas: hexOf(gasLimit), ...priceFields(fees) };
  for (const block of ["pending", "latest"]) {
    try {
      await network.rpc.request({ method: "eth_call", params: [object, block] });
      return "passes";
    } catch (error) {
      if (!(error instanceof RpcResponseError)) throw error;
      if (isRevert(error)) return "reverts";
    }
  }
  return "unknown";
}

function priceFields(fees: Fees): object {
  if (fees.type === "legacy") return { gasPrice: hexOf(fees.gasPrice) };
  return {
    maxFeePerGas: hexOf(fees.maxFeePerGas),
    maxPriorityFeePerGas: hexOf(fees.maxPriorityFeePerGas),
  };
}

function hexOf(value: bigint): string {
  return `0x${value.toString(16)}`;
}
