import type { WalletLie } from "@coinslot/devnet";
import type { Address } from "@coinslot/protocol";
import type { SettlingDevnet } from "./settling-devnet.ts";

/** A signature that no key makes, and that a wallet accepts which accepts anything. */
export const walletSignature = `0x${"77".repeat(100)}` as const;

/** Code that accepts any signature, in trials and in blocks, and uses 200,000 gas each time. */
export const dearWallet = "0x6203f1405f2050631626ba7e60e01b5f5260205ff3";

/** A contract that holds tokens, accepts any signature, and burns gas under the lie's condition. */
export async function createWallet(
  { devnet }: SettlingDevnet,
  lie: WalletLie = "none",
): Promise<Address> {
  const wallet = await devnet.deployLyingWallet();
  await devnet.mint({ to: wallet, amount: 1_000_000n });
  if (lie !== "none") await devnet.setLie(wallet, lie);
  return wallet;
}

/** A payment by such a wallet. */
export function payBy({ pay }: SettlingDevnet, wallet: Address) {
  return pay({ authorization: { from: wallet }, changeSignature: () => walletSignature });
}
