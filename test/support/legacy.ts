import type { Devnet } from "@coinslot/devnet";
import { createWalletClient, http, type LocalAccount, publicActions } from "viem";
import type { settle } from "x402/facilitator";

/** A wallet of the released packages of version 1, on a devnet. */
type LegacyWallet = Parameters<typeof settle>[0];

/** A wallet of the released packages of version 1, on a devnet. */
export function createLegacyWallet(devnet: Devnet, account: LocalAccount): LegacyWallet {
  const wallet = createWalletClient({
    account,
    chain: devnet.client.chain,
    transport: http(devnet.rpcUrl),
  }).extend(publicActions);
  // Their type names another copy of viem.
  return wallet as unknown as LegacyWallet;
}
