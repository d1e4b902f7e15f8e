import { compareHead, type RpcEndpointHandle } from "@coinslot/chain";
import type { ChainConfiguration } from "../configuration.ts";
import { readHeaders } from "../rpc/block-header.ts";
import { type Head, readHead } from "../rpc/read-head.ts";
import type { BlockId } from "../store/block-id.ts";
import { farBlocks, type TrustedPool } from "../trusted-pool.ts";
import type { SyncEvent } from "./sync-event.ts";

/** Maximum number of blocks in one event. */
const blocksAtOnce = 32;

/** Finds the newest known block up to a number. */
type FindKnown = (number: number) => Promise<BlockId | undefined>;

export interface PollOptions {
  /** Ascending, without gaps, the first is the base. */
  window: readonly [BlockId, ...BlockId[]];
  chain: Pick<ChainConfiguration, "finality">;
  pool: Pick<TrustedPool, "checkHead">;
  /** The endpoint that reported the newest block of the window; undefined after a start. */
  headEndpoint: number | undefined;
  findKnown: FindKnown;
}

/**
 * Compares the window with the chain of one endpoint, by the rule of `compareHead`. Reads only. The
 * window outlives the process, so a reorganisation while the service was down is found like any
 * other.
 *
 * Beside the rule that it shares with the block watcher stand the consequences of finality. The
 * window's base is final: another block there is no reset, but a doubt that every endpoint decides
 * (`pollEverywhere`). Blocks are written in steps, so an event holds the next ones and not all.
 *
 * Throws an error that makes the pool ask the next endpoint, also when the chain changes while it
 * is read.
 */
export async function pollChain(
  endpoint: RpcEndpointHandle,
  { window, chain, pool, headEndpoint, findKnown }: PollOptions,
): Promise<SyncEvent> {
  const head = await readHead(endpoint, { chain, pool });
  const [base, ...rest] = window;
  const tip = rest.at(-1) ?? base;
  // The base is final, so an endpoint without it lags, or is on another chain.
  if (head.number < base.number) return compareBelow(endpoint, { head, base, findKnown });
  const change = await compareHead(endpoint, head.header, {
    known: [toKnown(base), ...rest.map(toKnown)],
    isOther: headEndpoint !== undefined && headEndpoint !== endpoint.endpoint,
    maxBlocks: blocksAtOnce,
  });
  switch (change.type) {
    case "unchanged":
      return { type: "unchanged", head };
    case "advanced": {
      if (head.finalized <= tip.number + farBlocks)
        return { type: "advanced", head, blocks: change.blocks.map(toBlockId) };
      // The window is given up for good only if that block is there.
      await readHeaders(endpoint, [head.finalized]);
      return { type: "fell-behind", head };
    }
    case "reorganised":
      return { type: "reorganised", head, ancestor: toBlockId(change.ancestor) };
    case "unconnected":
      return { type: "beyond-finality", head, base, replaced: base, found: change.found };
  }
}

/**
 * While history is read there is no window. The newest known block must be part of the chain, or
 * the next blocks would stand on another one.
 */
export async function pollPast(
  endpoint: RpcEndpointHandle,
  {
    chain,
    pool,
    known,
    findKnown,
  }: Pick<PollOptions, "chain" | "pool" | "findKnown"> & { known: BlockId | undefined },
): Promise<SyncEvent> {
  const head = await readHead(endpoint, { chain, pool });
  if (known === undefined) return { type: "unchanged", head };
  return compareBelow(endpoint, { head, base: known, findKnown });
}

/** Compares the newest known final block, or the newest that the endpoint reaches. */
async function compareBelow(
  endpoint: RpcEndpointHandle,
  { head, base, findKnown }: { head: Head; base: BlockId; findKnown: FindKnown },
): Promise<SyncEvent> {
  const known = head.number < base.number ? await findKnown(head.number) : base;
  if (known === undefined) return { type: "unchanged", head };
  const [header] = await readHeaders(endpoint, [known.number]);
  if (header === undefined || header.hash === known.hash) return { type: "unchanged", head };
  return { type: "beyond-finality", head, base, replaced: known, found: header.hash };
}

function toKnown({ number, hash }: BlockId) {
  return { number: BigInt(number), hash };
}

function toBlockId({ number, hash }: { number: bigint; hash: string }): BlockId {
  return { number: Number(number), hash };
}
