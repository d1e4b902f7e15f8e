import { endpointProblem } from "../rpc/endpoint-problem.ts";
import type { RpcEndpointHandle, RpcOutcome } from "../rpc/rpc-requester.ts";
import { type BlockHeader, blockByNumber, parseBlockHeader } from "./block-header.ts";

/** An endpoint's newest block. Throws as `headerIn` does. */
export async function readHead(endpoint: RpcEndpointHandle): Promise<BlockHeader> {
  const [outcome] = await endpoint.requestMany([blockByNumber("latest")]);
  return headerIn(endpoint, outcome, { block: "latest", parse: parseBlockHeader });
}

/** Headers of blocks by their numbers, as one endpoint sees them at this moment. */
export async function readHeaders(
  endpoint: RpcEndpointHandle,
  numbers: readonly bigint[],
): Promise<BlockHeader[]> {
  if (numbers.length === 0) return [];
  const outcomes = await endpoint.requestMany(numbers.map(blockByNumber));
  return numbers.map((block, index) =>
    headerIn(endpoint, outcomes[index], { block, parse: parseBlockHeader }),
  );
}

/**
 * The header in one outcome, of the block with this number, hash or tag. Throws the endpoint's
 * error, or one that it does not have that block.
 *
 * @param parse reads the header with the fields that the caller needs
 */
export function headerIn<Header extends { number: bigint | number; hash: string }>(
  endpoint: RpcEndpointHandle,
  outcome: RpcOutcome | undefined,
  {
    block,
    parse,
  }: { block: Header["number"] | string; parse: (result: unknown) => Header | undefined },
): Header {
  if (outcome?.ok === false) throw outcome.error;
  const header = parse(outcome?.result);
  if (header && [header.number, header.hash, "latest"].includes(block)) return header;
  throw endpointProblem(endpoint, { kind: "behind", details: `it does not have block ${block}` });
}
