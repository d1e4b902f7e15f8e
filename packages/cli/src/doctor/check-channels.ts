import type { RpcPool } from "@coinslot/chain";
import { type ChannelContracts, readChannelContracts } from "@coinslot/facilitator";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { channelContracts } from "@coinslot/protocol";
import type { Check } from "./check.ts";

/**
 * The chain's part of payment channels (`batch-settlement`). Nothing is broken without them: other
 * payments need none of it.
 */
export async function checkChannels(options: {
  network: ConfiguredNetwork;
  pool: RpcPool;
}): Promise<Check[]> {
  const subject = { topic: "channels", about: options.network.name } as const;
  return [{ ...subject, ...describeContracts(await readChannelContracts(options.pool)) }];
}

function describeContracts(contracts: ChannelContracts): Pick<Check, "status" | "found"> {
  const { status, found } = judgeContracts(contracts);
  return { status, found: `${found}. ${listContracts(contracts)}` };
}

/** Names all that the chain has, and all that it lacks. */
function listContracts({ present, hasTransientStorage }: ChannelContracts): string {
  const parts: [name: string, isThere: boolean][] = [
    ["EIP-1153", hasTransientStorage],
    ["escrow", present.has("settlement")],
    ["collector for EIP-3009", present.has("erc3009Collector")],
    ["collector for Permit2", present.has("permit2Collector")],
    ["Permit2", present.has("permit2")],
    ["Multicall3", present.has("multicall3")],
    ["CREATE2 deployer", present.has("create2Deployer")],
  ];
  const listed = (isThere: boolean) =>
    parts.flatMap(([name, there]) => (there === isThere ? [name] : [])).join(", ") || "nothing";
  return `There: ${listed(true)}. Missing: ${listed(false)}`;
}

function judgeContracts(contracts: ChannelContracts): Pick<Check, "status" | "found"> {
  const { present, differences, hasTransientStorage } = contracts;
  const { settlement, erc3009Collector } = channelContracts;
  if (!present.has("settlement")) {
    const lacks = [
      ...(hasTransientStorage ? [] : ["EIP-1153"]),
      ...(present.has("create2Deployer") ? [] : ["the CREATE2 deployer"]),
    ];
    const deployment =
      lacks.length === 0
        ? "any account may deploy it by the script of the public x402 repository"
        : `and the chain lacks ${lacks.join(" and ")}, so the public script cannot deploy it`;
    const found = `The chain has no escrow of payment channels (${settlement}): ${deployment}`;
    return { status: "skipped", found };
  }
  // Before the differences: such a chain does not run the escrow's reads either.
  if (!hasTransientStorage) {
    const found =
      "The escrow of payment channels is there, and the chain lacks EIP-1153, which it needs: do not sell by channels on this chain";
    return { status: "warning", found };
  }
  if (differences.length > 0) {
    const found = `The contract at ${settlement} is not the escrow of payment channels (${differences.join(", ")}): do not sell by channels on this chain`;
    return { status: "warning", found };
  }
  if (!present.has("erc3009Collector")) {
    const found = `The escrow of payment channels takes no deposits by EIP-3009: there is no collector at ${erc3009Collector}. Any account may deploy it by the script of the public x402 repository`;
    return { status: "warning", found };
  }
  const isWithPermit2 = present.has("permit2Collector") && present.has("permit2");
  const ways = isWithPermit2 ? "EIP-3009 and Permit2" : "EIP-3009, not by Permit2";
  const reader = present.has("multicall3")
    ? ""
    : ". Multicall3 is missing: clients of the reference cannot read a channel's state";
  return { status: "ok", found: `Payment channels: the escrow takes deposits by ${ways}${reader}` };
}
