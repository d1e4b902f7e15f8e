import type { Address, Hex } from "@coinslot/protocol";

/** Transaction of a relayer: a call that sends no native coin. Fees in wei per unit of gas. */
export type RelayerTransaction = {
  chainId: number;
  nonce: number;
  to: Address;
  data: Hex;
  gas: bigint;
} & (
  | { type: "legacy"; gasPrice: bigint }
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
);

/** Signs transactions for one address. A viem local account is one. */
export interface RelayerSigner {
  address: Address;
  signTransaction(transaction: RelayerTransaction): Promise<Hex>;
}
