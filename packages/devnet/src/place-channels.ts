import { channelContracts } from "@coinslot/protocol";
import { encodeDeployData } from "viem";
import { testBatchSettlement } from "../contracts/test-batch-settlement.generated.ts";
import { testErc3009Collector } from "../contracts/test-erc3009-collector.generated.ts";
import type { Devnet } from "./devnet.ts";

/**
 * Puts the contracts of payment channels (`batch-settlement`) on a devnet, at their addresses on
 * public chains: the escrow, and the collector of deposits by EIP-3009.
 */
export async function placeChannels(devnet: Devnet): Promise<typeof channelContracts> {
  const { settlement, erc3009Collector } = channelContracts;
  await devnet.place({ address: settlement, creationCode: testBatchSettlement.bytecode });
  await devnet.place({
    address: erc3009Collector,
    creationCode: encodeDeployData({ ...testErc3009Collector, args: [settlement] }),
  });
  return channelContracts;
}
