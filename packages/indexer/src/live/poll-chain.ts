import type { RpcEndpointHandle } from "@coinslot/chain";
import type { ChainConfiguration } from "../configuration.ts";
import { type BlockHeader, readHeaders } from "../rpc/block-header.ts";
import { endpointProblem } from "../rpc/endpoint-problem.ts";
import { readHead } from "../rpc/read-head.ts";
import type { BlockId } from "../store/block-id.ts";
import type { SyncEvent } from "./sync-event.ts";

/** Maximum number of blocks in one event. */
const blocksAtOnce = 32;
/** Number of missing final blocks from which on ranges are faster. */
const farBehind = 64;

export interface LookOptions {
  /** Ascending, without gaps, the first is the base. */
  window: readonly [BlockId, ...BlockId[]];
  chain: Pick<ChainConfiguration, "finality">;
  /** The endpoint that reported the newest block of the window; undefined after a start. */
  headEndpoint: number | undefined;
}

/**
 * Compares the window with the chain of one endpoint. Reads only. The result depends on the window
 * and the chain alone. So a reorganisation while the service was down is found in the same way as
 * any other.
 *
 * Throws an error that makes the pool ask the next endpoint, also when the chain changes while it
 * is read.
 */
export async function look(
  endpoint: RpcEndpointHandle,
  { window, chain, headEndpoint }: LookOptions,
): Promise<SyncEvent> {
  const head = await readHead(endpoint, chain);
  const { latest } = head;
  const [base] = window;
  const tip = window.at(-1) ?? base;
  const number = numberByHashes(latest, window);
  if (number !== undefined && number !== latest.number)
    throw endpointProblem(endpoint, {
      kind: "malformed",
      details: `it calls block ${number} number ${latest.number}`,
    });
  // The tip itself, or an old head: an endpoint without the newer blocks causes no rollback.
  if (window.some(({ hash }) => hash === latest.hash)) return { type: "unchanged", head };
  if (latest.number < base.number) return { type: "unchanged", head };
  // Another block at a known height. From an endpoint other than the window's it may be a
  // short-lived fork.
  const isOther = headEndpoint !== undefined && headEndpoint !== endpoint.endpoint;
  if (latest.number <= tip.number && isOther) return { type: "unchanged", head };

  if (latest.parentHash === tip.hash) return { type: "advanced", head, blocks: [latest] };
  if (latest.number > tip.number) {
    const last = Math.min(latest.number, tip.number + blocksAtOnce);
    const numbers = Array.from({ length: last - tip.number + 1 }, (_, index) => tip.number + index);
    const [atTip, ...blocks] = await readHeaders(endpoint, numbers);
    if (atTip?.hash === tip.hash) {
      if (head.finalized > tip.number + farBehind) {
        // The window is given up for good only if that block is there.
        await readHeaders(endpoint, [head.finalized]);
        return { type: "fell-behind", head };
      }
      return { type: "advanced", head, blocks: linked(endpoint, tip, blocks) };
    }
  }
  const known = window.filter(({ number }) => number <= latest.number);
  const headers = await readHeaders(
    endpoint,
    known.map(({ number }) => number),
  );
  const ancestor = known.findLast(({ hash }, index) => headers[index]?.hash === hash);
  if (ancestor !== undefined) return { type: "reorganised", head, ancestor };
  return { type: "beyond-finality", head, base, found: headers[0]?.hash ?? "nothing" };
}

/**
 * While history is read there is no window. The newest known block must be part of the chain, or
 * the next blocks would stand on another one.
 */
export async function lookAtPast(
  endpoint: RpcEndpointHandle,
  { chain, known }: { chain: LookOptions["chain"]; known: BlockId | undefined },
): Promise<SyncEvent> {
  const head = await readHead(endpoint, chain);
  if (known === undefined || known.number > head.latest.number) return { type: "unchanged", head };
  const [header] = await readHeaders(endpoint, [known.number]);
  if (header?.hash === known.hash) return { type: "unchanged", head };
  return { type: "beyond-finality", head, base: known, found: header?.hash ?? "nothing" };
}

/** The required number of a block that is in the window, or on top of one that is. */
function numberByHashes(
  { hash, parentHash }: BlockHeader,
  window: readonly BlockId[],
): number | undefined {
  const own = window.find((block) => block.hash === hash);
  if (own !== undefined) return own.number;
  const parent = window.find((block) => block.hash === parentHash);
  return parent && parent.number + 1;
}

/** Blocks asked for by number are of one branch only if each is the child of the one before. */
function linked(
  endpoint: RpcEndpointHandle,
  tip: BlockId,
  blocks: readonly BlockHeader[],
): readonly BlockHeader[] {
  let parent = tip.hash;
  for (const { number, hash, parentHash } of blocks) {
    if (parentHash !== parent)
      throw endpointProblem(endpoint, {
        kind: "behind",
        details: `its chain changed at block ${number} while it was read`,
      });
    parent = hash;
  }
  return blocks;
}
