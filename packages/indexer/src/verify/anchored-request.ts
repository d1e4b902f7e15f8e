import {
  blockByNumber,
  endpointProblem,
  type RpcEndpointHandle,
  type RpcOutcome,
} from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { hashesToItsName } from "../proof/header-hash.ts";
import {
  type BlockReceipts,
  type ReceiptsQuestion,
  receiptsCalls,
  receiptsOf,
} from "../proof/read-receipts.ts";
import { type BlockHeader, headerOf } from "../rpc/block-header.ts";
import type { BlockId } from "../store/block-id.ts";
import { ContradictionError } from "./contradiction-error.ts";

/** The arguments of one call, as an endpoint takes them. */
type RpcCall = Parameters<RpcEndpointHandle["requestMany"]>[0][number];

/** A request whose blocks are asked for by number. */
interface AnchoredRequest {
  calls: readonly RpcCall[];
  minBlock: number;
  signal: AbortSignal;
}

/**
 * Sends calls together with a question for an indexed block, the anchor. Blocks are asked for by
 * number. A gateway may give each request to another node, or the chain may change in between. So
 * an answer of a node that does not have the anchor is thrown away.
 */
export async function requestOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  request: AnchoredRequest,
): Promise<readonly (RpcOutcome | undefined)[]> {
  const outcomes = await requestIfOnChainOf(endpoint, anchor, request);
  if (outcomes !== undefined) return outcomes;
  throw endpointProblem(endpoint, {
    kind: "behind",
    details: `its block ${anchor.number} is another one: it is on a fork`,
  });
}

/** Undefined: the node has another block in the anchor's place. */
async function requestIfOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { calls, minBlock, signal }: AnchoredRequest,
): Promise<readonly (RpcOutcome | undefined)[] | undefined> {
  const [anchored, ...outcomes] = await endpoint.requestMany(
    [blockByNumber(BigInt(anchor.number)), ...calls],
    { minBlock: BigInt(Math.max(minBlock, anchor.number)), signal },
  );
  const isOnChain = headerOf(endpoint, anchored, anchor.number).hash === anchor.hash;
  return isOnChain ? outcomes : undefined;
}

/** Reads a block by its receipts, at a node that has the anchor. */
export async function readReceiptsOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { block, evidence, signal }: ReceiptsQuestion & { block: number; signal: AbortSignal },
): Promise<BlockReceipts> {
  const calls = receiptsCalls(block);
  const outcomes = await requestOnChainOf(endpoint, anchor, { calls, minBlock: block, signal });
  return receiptsOf(endpoint, { block, evidence }, outcomes);
}

/** Reads headers by their numbers, at a node that has the anchor. */
export async function readHeadersOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { blocks, signal }: { blocks: readonly number[]; signal: AbortSignal },
): Promise<BlockHeader[]> {
  const calls = blocks.map((number) => blockByNumber(BigInt(number)));
  const minBlock = Math.max(...blocks);
  const outcomes = await requestOnChainOf(endpoint, anchor, { calls, minBlock, signal });
  return blocks.map((number, index) => headerOf(endpoint, outcomes[index], number));
}

/** A block as one endpoint names it. */
interface NamedBlock {
  header: BlockHeader;
  /** True if its fields make its hash. */
  isHashed: boolean;
}

interface BlocksToMend {
  anchor: BlockId;
  blocks: readonly BlockHeader[];
  signal: AbortSignal;
}

/**
 * Asks once more for the headers of blocks that are about to be mended, at this endpoint and every
 * other. Otherwise a single endpoint could remove by an invented header the blocks that another has
 * returned. Throws a `ContradictionError` where one names another block. Its header is ignored if
 * it does not make its hash, while this endpoint's does.
 *
 * Throws also while another endpoint does not answer. Silence is no consent, and an endpoint that
 * lies may come with an outage of the honest one. Of three or more it is enough that one other
 * names the same blocks. An endpoint that is on a fork, or outvoted, has no say.
 */
export async function confirmBlocks(
  { pool, outvoted }: Pick<ChainContext, "pool" | "outvoted">,
  endpoint: RpcEndpointHandle,
  { anchor, blocks, signal }: BlocksToMend,
): Promise<void> {
  if (blocks.length === 0) return;
  const own = await nameBlocks(endpoint, anchor, { blocks, signal });
  for (const [index, block] of blocks.entries())
    if (!isSameBlock(own?.[index]?.header, block))
      throw endpointProblem(endpoint, {
        kind: "behind",
        details: `its block ${block.number} is another one each time`,
      });
  let silence: ContradictionError | undefined;
  let isShared = false;
  for (const other of pool.endpoints) {
    if (other.endpoint === endpoint.endpoint || outvoted.has(other.endpoint)) continue;
    const named = await nameBlocks(other, anchor, { blocks, signal }).catch((cause: unknown) => {
      signal.throwIfAborted();
      const message = `Endpoint ${other.endpoint} does not confirm the blocks to be mended`;
      silence ??= new ContradictionError(message, { cause });
      return undefined;
    });
    // Not the header of `own`: it may leave out the root that the receipts had.
    const contradiction = named?.find((theirs, index) => {
      const isHashed = own?.[index]?.isHashed === true;
      return !isSameBlock(blocks[index], theirs.header) && (theirs.isHashed || !isHashed);
    });
    if (contradiction !== undefined)
      throw new ContradictionError(
        `Endpoint ${other.endpoint} has another block ${contradiction.header.number}`,
      );
    isShared ||= named?.every(({ header }, index) => isNamedBy(header, blocks[index])) === true;
  }
  if (silence !== undefined && !(isShared && pool.endpoints.length > 2)) throw silence;
}

/**
 * As `confirmBlocks`, for blocks beside a range. Returns false where it throws a
 * `ContradictionError`: such blocks wait for their own range, and it does not wait for them.
 */
export async function areConfirmed(
  context: Pick<ChainContext, "pool" | "outvoted">,
  endpoint: RpcEndpointHandle,
  question: BlocksToMend,
): Promise<boolean> {
  try {
    await confirmBlocks(context, endpoint, question);
    return true;
  } catch (error) {
    if (error instanceof ContradictionError) return false;
    throw error;
  }
}

/** Compares the fields that both name. */
function isSameBlock(one: BlockHeader | undefined, other: BlockHeader): boolean {
  const { hash, timestampMs, receiptsRoot } = other;
  return (
    one?.hash === hash &&
    one.timestampMs === timestampMs &&
    (one.receiptsRoot ?? receiptsRoot) === (receiptsRoot ?? one.receiptsRoot)
  );
}

/** As `isSameBlock`, and no field is left out that the block has. */
function isNamedBy(header: BlockHeader, block: BlockHeader | undefined): boolean {
  const leavesOut = block?.receiptsRoot !== undefined && header.receiptsRoot === undefined;
  return !leavesOut && isSameBlock(block, header);
}

/** Undefined: the endpoint is on a fork. */
async function nameBlocks(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { blocks, signal }: { blocks: readonly BlockHeader[]; signal: AbortSignal },
): Promise<NamedBlock[] | undefined> {
  const calls = blocks.map(({ number }) => blockByNumber(BigInt(number)));
  const minBlock = Math.max(...blocks.map(({ number }) => number));
  const outcomes = await requestIfOnChainOf(endpoint, anchor, { calls, minBlock, signal });
  return (
    outcomes &&
    blocks.map(({ number }, index) => {
      const outcome = outcomes[index];
      const header = headerOf(endpoint, outcome, number);
      return { header, isHashed: outcome?.ok === true && hashesToItsName(outcome.result) };
    })
  );
}
