import { blockByNumber, type RpcEndpointHandle } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import { parseHeader } from "../rpc/block-header.ts";
import type { BlockId } from "../store/block-id.ts";
import { findKnownBlock } from "../store/marks.ts";
import { farBlocks } from "../trusted-pool.ts";

/** The outcome of a vote about an indexed block. */
export interface Agreement {
  /** The newest indexed block that may be verified; undefined: none. */
  agreed: BlockId | undefined;
  /** True if two endpoints have it. If not, the vote is due again, also without new blocks. */
  isShared: boolean;
  /** The reason for which the blocks above it may not. */
  problem: string | undefined;
  /** Two endpoints call this block the newest one, far below the block of the question. */
  deniedAbove?: number;
}

interface Vote {
  endpoint: number;
  /** The block of the question; undefined: the endpoint calls no known block final. */
  block: BlockId | undefined;
  isSame: boolean;
  /** Its newest block, where that is below the one of the question. */
  head?: number;
}

/**
 * Asks every endpoint for an indexed block: one call each, none where there is one endpoint. More
 * of them must have it than another one in its place, and two at least. An endpoint on a fork of
 * its own would otherwise verify that fork, as its readings agree with each other.
 *
 * The minority is outvoted: the chain is followed at other endpoints until it has the block again.
 * Outvoted endpoints that differ outvote no other one, and stay so while the others are silent. An
 * endpoint that does not answer has no vote. A lone voter decides, and the vote is repeated until
 * another one answers. One with its head below the block votes about the newest known block
 * that it reaches. So does one whose newest final block is below, by its `finalized` tag. Higher
 * blocks wait for it: what one endpoint alone calls final is not. Two whose heads are far below the
 * block deny it, unless more have it: those are outvoted. Those that lag, or
 * whose newest block is old, deny nothing: they may have stopped.
 */
export async function agreeOnBlock(
  context: Pick<ChainContext, "chain" | "database" | "logger" | "outvoted"> & {
    pool: Pick<ChainContext["pool"], "endpoints" | "compareHeads">;
  },
  top: BlockId,
  signal: AbortSignal,
): Promise<Agreement> {
  const { chain, logger, pool, outvoted } = context;
  if (pool.endpoints.length === 1) return { agreed: top, isShared: true, problem: undefined };
  const asked = await Promise.all(
    pool.endpoints.map((endpoint) => vote(context, endpoint, { top, signal })),
  );
  // The writer has ended: others may read at every endpoint again, and no later vote lets them.
  signal.throwIfAborted();
  const votes = asked.flatMap((each) => each ?? []);
  const agreeing = votes
    .filter(({ isSame }) => isSame)
    .sort((a, b) => (b.block?.number ?? -1) - (a.block?.number ?? -1));
  const differing = votes.filter(({ isSame }) => !isSame);
  const deniedAbove = await findDenied(context, agreeing, top);
  signal.throwIfAborted();
  if (agreeing.length > differing.length) {
    const having = agreeing.filter(({ block }) => block === top);
    const below = agreeing.filter(({ block }) => block !== top);
    const isDenied = deniedAbove !== undefined;
    for (const { endpoint } of isDenied ? below : having) outvoted.delete(endpoint);
    outvote(isDenied ? [...differing, ...having] : differing);
  } else if (
    differing.length > agreeing.length &&
    differing.some(({ endpoint }) => !outvoted.has(endpoint))
  )
    outvote(agreeing);
  if (differing.length > 0 && differing.length >= agreeing.length) {
    const details = differing.map(({ endpoint }) => `endpoint ${endpoint} has another`).join(", ");
    return {
      agreed: undefined,
      isShared: false,
      problem: `Block ${top.number} is disputed: ${details}`,
    };
  }
  const [first, second = first] = agreeing;
  const agreed = second?.block;
  const isAlone = first !== undefined && first.block !== agreed;
  const above = agreed === undefined ? "All blocks" : `Blocks above ${agreed.number}`;
  if (deniedAbove !== undefined)
    return {
      agreed,
      isShared: false,
      problem: `Blocks above ${deniedAbove} are unknown to all endpoints but one`,
      deniedAbove,
    };
  const standing = chain.finality.finalizedTag ? "final at" : "known to";
  return {
    agreed,
    isShared: agreeing.length > 1 && !isAlone,
    problem: isAlone ? `${above} are ${standing} endpoint ${first.endpoint} alone` : undefined,
  };

  function outvote(minority: readonly Vote[]): void {
    for (const { endpoint } of minority) {
      if (outvoted.has(endpoint)) continue;
      outvoted.add(endpoint);
      const facts = { chain: chain.name, endpoint, block: top.number };
      logger.error(facts, "An endpoint is not read: most others deny its final block");
    }
  }
}

/** The newest block of the two that deny the block of the question; undefined: it is not denied. */
async function findDenied(
  { pool }: { pool: Pick<ChainContext["pool"], "compareHeads"> },
  agreeing: readonly Vote[],
  top: BlockId,
): Promise<number | undefined> {
  const having = agreeing.filter(({ block }) => block === top);
  const isFarBelow = (head: number) => head + farBlocks < top.number;
  const below = agreeing.filter(({ head = top.number }) => isFarBelow(head));
  if (below.length < 2 || below.length <= having.length) return undefined;
  // Behind a gateway a vote may be of a node that lags. One answer has to be both low and fresh.
  const denying = (await pool.compareHeads())
    .filter(({ endpoint }) => below.some((each) => each.endpoint === endpoint))
    .filter(({ isLagging, isOld }) => !isLagging && !isOld)
    .map(({ number }) => Number(number))
    .filter(isFarBelow);
  if (denying.length <= having.length) return undefined;
  const [, second] = denying.sort((a, b) => b - a);
  return second;
}

/** Undefined: the endpoint does not answer. */
async function vote(
  { chain, database: { kysely } }: Pick<ChainContext, "chain" | "database">,
  endpoint: RpcEndpointHandle,
  { top, signal }: { top: BlockId; signal: AbortSignal },
): Promise<Vote | undefined> {
  const { chainId, finality } = chain;
  const { hash, final } = await ask(top);
  if (hash !== undefined && final >= top.number) return voteOf(top, hash);
  const reached = hash === undefined ? await findHead() : final;
  if (reached === undefined || reached >= top.number) return undefined;
  const number = Math.min(reached, final);
  const head = hash === undefined ? { head: reached } : {};
  const known = await findKnownBlock(kysely, { chainId, number });
  if (known === undefined)
    return { endpoint: endpoint.endpoint, block: undefined, isSame: true, ...head };
  const below = await ask(known);
  return below.hash === undefined ? undefined : { ...voteOf(known, below.hash), ...head };

  /** The block's hash at the endpoint, and its newest final block: infinity without a tag. */
  async function ask({ number }: BlockId): Promise<{ hash: string | undefined; final: number }> {
    const calls = [blockByNumber(BigInt(number))];
    if (finality.finalizedTag) calls.push(blockByNumber("finalized"));
    const [block, tagged] = await endpoint.requestMany(calls, { signal });
    const header = block?.ok === true ? parseHeader(block.result) : undefined;
    const final = tagged?.ok === true ? parseHeader(tagged.result)?.number : undefined;
    return {
      hash: header?.number === number ? header.hash : undefined,
      final: final ?? Number.POSITIVE_INFINITY,
    };
  }

  async function findHead(): Promise<number | undefined> {
    const [answer] = await endpoint.requestMany([{ method: "eth_blockNumber" }], { signal });
    const head = answer?.ok === true ? endpoint.head() : undefined;
    return head === undefined ? undefined : Number(head);
  }

  function voteOf(block: BlockId, found: string): Vote {
    return { endpoint: endpoint.endpoint, block, isSame: found === block.hash };
  }
}
