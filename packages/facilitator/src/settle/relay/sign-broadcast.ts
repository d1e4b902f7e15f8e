import { type Address, type Hex, keccak256 } from "@coinslot/protocol";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { BroadcastsTable } from "../../ledger/transactions-schema.ts";
import type { Fees } from "./fee-quote.ts";
import { priceOf } from "./fees-by-each.ts";
import type { RelayerSigner } from "./relayer-signer.ts";

/** Gas of a transaction that makes no call. */
export const fillerGas = 21_000n;

/** Signs one form of a transaction. Nothing is sent. */
export async function signBroadcast(options: {
  signer: RelayerSigner;
  chainId: number;
  nonce: number;
  to: Address;
  data: Hex;
  gasLimit: bigint;
  fees: Fees;
  content: BroadcastsTable["content"];
}): Promise<Broadcast> {
  const { signer, chainId, nonce, to, data, gasLimit, fees, content } = options;
  const common = { chainId, nonce, to, data, gas: gasLimit };
  const raw =
    fees.type === "legacy"
      ? await signer.signTransaction({ type: "legacy", gasPrice: fees.gasPrice, ...common })
      : await signer.signTransaction({
          type: "eip1559",
          maxFeePerGas: fees.maxFeePerGas,
          maxPriorityFeePerGas: fees.maxPriorityFeePerGas,
          ...common,
        });
  return {
    hash: `0x${Buffer.from(keccak256(Buffer.from(raw.slice(2), "hex"))).toString("hex")}`,
    raw,
    content,
    maxFeePerGas: priceOf(fees),
    maxPriorityFeePerGas: fees.type === "legacy" ? undefined : fees.maxPriorityFeePerGas,
  };
}

/** The fees with which a transaction was signed. */
export function feesOf({ maxFeePerGas, maxPriorityFeePerGas }: Broadcast): Fees {
  return maxPriorityFeePerGas === undefined
    ? { type: "legacy", gasPrice: maxFeePerGas }
    : { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
}
