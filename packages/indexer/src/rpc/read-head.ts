import { blockByNumber, type RpcEndpointHandle } from "@coinslot/chain";
import type { ChainConfiguration } from "../configuration.ts";
import { type BlockHeader, headerOf, parseHeader } from "./block-header.ts";

export interface Head {
  latest: BlockHeader;
  /** The number of the newest final block, 0 at least. */
  finalized: number;
}

/**
 * An endpoint's newest block, and its newest final one: by the endpoint's own answer where the
 * chain has it, else by depth.
 */
export async function readHead(
  endpoint: RpcEndpointHandle,
  { finality }: Pick<ChainConfiguration, "finality">,
): Promise<Head> {
  const calls = [blockByNumber("latest")];
  if (finality.finalizedTag) calls.push(blockByNumber("finalized"));
  const [first, second] = await endpoint.requestMany(calls);
  const latest = headerOf(endpoint, first, "latest");
  const tagged = second?.ok ? parseHeader(second.result)?.number : undefined;
  const finalized = tagged ?? latest.number - finality.depth;
  return { latest, finalized: Math.max(0, Math.min(finalized, latest.number)) };
}
