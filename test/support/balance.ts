import type { Devnet } from "@coinslot/devnet";
import { type Address, eip3009Abi } from "@coinslot/protocol";

/** An account's balance of the devnet's stablecoin, or of another token, in its smallest unit. */
export function balanceOf(
  devnet: Devnet,
  account: Address,
  token: Address = devnet.token,
): Promise<bigint> {
  return devnet.client.readContract({
    address: token,
    abi: eip3009Abi,
    functionName: "balanceOf",
    args: [account],
  });
}
