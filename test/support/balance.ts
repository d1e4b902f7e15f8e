import type { Devnet } from "@coinslot/devnet";
import { type Address, eip3009Abi } from "@coinslot/protocol";

/** An account's balance of the devnet's stablecoin, in its smallest unit. */
export function balanceOf(devnet: Devnet, account: Address): Promise<bigint> {
  return devnet.client.readContract({
    address: devnet.token,
    abi: eip3009Abi,
    functionName: "balanceOf",
    args: [account],
  });
}
