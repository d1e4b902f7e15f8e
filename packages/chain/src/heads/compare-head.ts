import { endpointProblem } from "../rpc/endpoint-problem.ts";
import type { RpcEndpointHandle } from "../rpc/rpc-requester.ts";
import type { BlockHeader } from "./block-header.ts";
import { readHeaders } from "./read-headers.ts";

/** A block by its number and its hash. */
export interface KnownBlock {
  number: bigint;
  /** In lowercase. */
  hash: string;
}

/** Known blocks of one chain: ascending, without gaps, one at least. */
export type KnownBlocks = readonly [KnownBlock, ...KnownBlock[]];

/** Difference between the known blocks and an endpoint's chain. */
export type HeadChange =
  /** The head is known, or of an endpoint that lags or prefers a fork no longer than the chain. */
  | { type: "unchanged" }
  /** Blocks on top of the newest known one, oldest first, each the child of the one before. */
  | { type: "advanced"; blocks: readonly BlockHeader[] }
  /** The known blocks above `ancestor` are not part of the endpoint's chain. */
  | { type: "reorganised"; ancestor: KnownBlock }
  /** No known block is part of the endpoint's chain. `found`: the hash in place of the oldest. */
  | { type: "unconnected"; found: string };

export interface CompareOptions {
  known: KnownBlocks;
  /** True if another endpoint has reported the newest known block, and is not silent for long. */
  isOther: boolean;
  /** Maximum number of blocks of `advanced`. */
  maxBlocks: number;
}

/** Ancestors asked for in the first request; four times as many in each later one. */
const firstAncestors = 8;

/**
 * Compares known blocks with the chain of one endpoint, whose newest block is `latest`. The result
 * depends on these two alone. So a reorganisation during an outage is found like any other.
 *
 * A different block at a known height is accepted from the endpoint that reported the newest known
 * block. Another endpoint must show a longer chain: its block may be of a short-lived fork.
 *
 * Throws an error that makes the pool ask the next endpoint where the endpoint contradicts itself.
 * It may do so when its chain changes during the read.
 */
export async function compareHead(
  endpoint: RpcEndpointHandle,
  latest: BlockHeader,
  { known, isOther, maxBlocks }: CompareOptions,
): Promise<HeadChange> {
  const [base] = known;
  const tip = known.at(-1) ?? base;
  const parent = known.find(({ hash }) => hash === latest.parentHash);
  requireNumber(endpoint, latest, { known, parent });
  if (known.some(({ hash }) => hash === latest.hash)) return { type: "unchanged" };
  if (isOther && latest.number <= tip.number) return { type: "unchanged" };
  if (parent === tip) return { type: "advanced", blocks: [latest] };
  if (parent !== undefined) return { type: "reorganised", ancestor: parent };

  let found = latest.hash;
  if (latest.number > tip.number) {
    // Missed blocks are most likely on top of the tip, which travels in the same request.
    const last = tip.number + BigInt(maxBlocks);
    const end = latest.number <= last ? latest.number : last + 1n;
    const [atTip, ...missed] = await readHeaders(endpoint, numbersFrom(tip.number, end));
    if (atTip?.hash === tip.hash) {
      const blocks = latest.number <= last ? [...missed, latest] : missed;
      requireLinked(endpoint, tip, blocks);
      return { type: "advanced", blocks };
    }
    found = atTip?.hash ?? found;
  }
  const older = known.filter(({ number }) => number < tip.number && number < latest.number);
  return (await findAncestor(endpoint, older)) ?? { type: "unconnected", found };
}

/** The blocks from a parent up to `latest`, oldest first. Throws where they are not linked. */
export async function readBranch(
  endpoint: RpcEndpointHandle,
  parent: KnownBlock,
  latest: BlockHeader,
): Promise<BlockHeader[]> {
  const between = await readHeaders(endpoint, numbersFrom(parent.number + 1n, latest.number));
  const branch = [...between, latest];
  requireLinked(endpoint, parent, branch);
  return branch;
}

/**
 * Finds the newest of these blocks that the endpoint has. Asks by number, in batches that grow. An
 * ordinary reorganisation costs one request, and one of hundreds of blocks a few.
 */
async function findAncestor(
  endpoint: RpcEndpointHandle,
  blocks: readonly KnownBlock[],
): Promise<HeadChange | undefined> {
  let found: string | undefined;
  let size = firstAncestors;
  for (let end = blocks.length; end > 0; size *= 4) {
    const start = Math.max(0, end - size);
    const asked = blocks.slice(start, end);
    const headers = await readHeaders(
      endpoint,
      asked.map(({ number }) => number),
    );
    const ancestor = asked.findLast(({ hash }, index) => headers[index]?.hash === hash);
    if (ancestor !== undefined) return { type: "reorganised", ancestor };
    found = headers[0]?.hash;
    end = start;
  }
  return found === undefined ? undefined : { type: "unconnected", found };
}

/** A block that is known, or on top of a known one, has a number by that. */
function requireNumber(
  endpoint: RpcEndpointHandle,
  { number, hash }: BlockHeader,
  { known, parent }: { known: KnownBlocks; parent: KnownBlock | undefined },
): void {
  const required =
    known.find((block) => block.hash === hash)?.number ?? (parent && parent.number + 1n);
  if (required === undefined || required === number) return;
  throw endpointProblem(endpoint, {
    kind: "malformed",
    details: `it calls block ${required} number ${number}`,
  });
}

/** Blocks asked for by number are of one branch only if each is the child of the one before. */
function requireLinked(
  endpoint: RpcEndpointHandle,
  parent: KnownBlock,
  blocks: readonly BlockHeader[],
): void {
  let parentHash: string = parent.hash;
  for (const block of blocks) {
    if (block.parentHash !== parentHash)
      throw endpointProblem(endpoint, {
        kind: "behind",
        details: `its chain changed at block ${block.number} while it was read`,
      });
    parentHash = block.hash;
  }
}

/** From `first` up to, but not including, `end`. */
function numbersFrom(first: bigint, end: bigint): bigint[] {
  const numbers: bigint[] = [];
  for (let number = first; number < end; number += 1n) numbers.push(number);
  return numbers;
}
