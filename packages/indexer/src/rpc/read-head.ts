import {
  type BlockHeader,
  blockByNumber,
  headerIn,
  parseBlockHeader,
  type RpcEndpointHandle,
} from "@coinslot/chain";
import type { ChainConfiguration } from "../configuration.ts";
import type { TrustedPool } from "../trusted-pool.ts";
import { datedHeaderSchema } from "./block-header.ts";

/** An endpoint's newest block. */
export interface Head {
  header: BlockHeader;
  number: number;
  timestampMs: number;
  /** The number of the newest final block, 0 at least. */
  finalized: number;
}

/**
 * An endpoint's newest block, and its newest final one. That follows the endpoint's own answer
 * where the chain has it, else the depth. Throws where the head may be made up.
 */
export async function readHead(
  endpoint: RpcEndpointHandle,
  {
    chain: { finality },
    pool,
  }: { chain: Pick<ChainConfiguration, "finality">; pool: Pick<TrustedPool, "checkHead"> },
): Promise<Head> {
  const calls = [blockByNumber("latest")];
  if (finality.finalizedTag) calls.push(blockByNumber("finalized"));
  const [first, second] = await endpoint.requestMany(calls);
  const parse = (result: unknown) => datedHeaderSchema.safeParse(result).data;
  const header = headerIn(endpoint, first, { block: "latest", parse });
  const number = Number(header.number);
  await pool.checkHead(endpoint, number);
  const tagged = second?.ok ? parseBlockHeader(second.result)?.number : undefined;
  const finalized = tagged === undefined ? number - finality.depth : Number(tagged);
  return {
    header,
    number,
    timestampMs: Number(header.timestamp) * 1000,
    finalized: Math.max(0, Math.min(finalized, number)),
  };
}
