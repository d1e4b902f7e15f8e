import { RpcClosedError } from "../rpc/rpc-errors.ts";
import type { RpcEndpointHandle } from "../rpc/rpc-requester.ts";
import type { BlockEvent } from "./block-event.ts";
import type { BlockHeader } from "./block-header.ts";
import { compareHead, readBranch } from "./compare-head.ts";
import { readHead } from "./read-headers.ts";
import { emit, type WatcherContext } from "./watcher-context.ts";

/** Polls now, or joins the poll under way. Rejects with what the pool throws. */
export function pollHead({ closing, polls }: WatcherContext): Promise<BlockHeader> {
  const { signal } = closing;
  return signal.aborted ? Promise.reject(signal.reason) : polls.join();
}

/** One poll, of which `pollHead` runs one at a time. */
export async function pollOnce(context: WatcherContext): Promise<BlockHeader> {
  const { clock } = context;
  const begunAt = clock.now();
  try {
    const event = await context.pool
      .onEndpoint((endpoint) => readChange(context, endpoint))
      .finally(() => {
        context.polledAt = clock.now();
      });
    context.readAt = begunAt;
    // This process's own read is newer.
    context.heard = undefined;
    if (!context.reachable) {
      context.reachable = true;
      emit(context, { type: "reachable" });
    }
    if (event) emit(context, event);
  } catch (error) {
    if (context.reachable && !(error instanceof RpcClosedError)) {
      context.reachable = false;
      emit(context, { type: "unreachable", error });
    }
    throw error;
  }
  const head = context.window.head();
  if (!head) throw new TypeError("a poll of the chain left no head");
  return head;
}

/** Reads the head, and the blocks since the window's, at one endpoint. Undefined: no change. */
async function readChange(
  context: WatcherContext,
  endpoint: RpcEndpointHandle,
): Promise<BlockEvent | undefined> {
  const { window, windowSize, maxMissed } = context;
  const latest = await readHead(endpoint);
  const isOther = isOtherThanHeads(context, endpoint);
  const head = window.head();
  const [base, ...rest] = window.blocks();
  if (!head || !base) {
    enter(context, endpoint, [latest]);
    return { type: "advanced", head: latest, entered: [latest] };
  }
  // Subscribers are given every block or a reset, so a longer gap is not read at all.
  if (latest.number - head.number > BigInt(maxMissed)) {
    enter(context, endpoint, [latest]);
    return { type: "reset", head: latest, reason: "missed-blocks" };
  }
  const change = await compareHead(endpoint, latest, {
    known: [base, ...rest],
    isOther,
    maxBlocks: windowSize,
  });
  switch (change.type) {
    case "unchanged":
      return undefined;
    case "advanced": {
      enter(context, endpoint, change.blocks);
      return { type: "advanced", head: latest, entered: change.blocks };
    }
    case "reorganised": {
      const entered = await readBranch(endpoint, change.ancestor, latest);
      const left = enter(context, endpoint, entered);
      return { type: "reorganised", head: latest, left, entered };
    }
    case "unconnected": {
      enter(context, endpoint, [latest]);
      return { type: "reset", head: latest, reason: "deep-reorganisation" };
    }
  }
}

/**
 * True while another endpoint's shorter chain counts less than the known head. That ends when the
 * head's endpoint is silent: a false head far above the chain must not stop the watch for good.
 */
function isOtherThanHeads(context: WatcherContext, { endpoint }: RpcEndpointHandle): boolean {
  const { headEndpoint, headEndpointAt, headEndpointMs, clock } = context;
  if (headEndpoint === undefined) return false;
  if (headEndpoint !== endpoint) return clock.now() - headEndpointAt < headEndpointMs;
  context.headEndpointAt = clock.now();
  return false;
}

/** Puts blocks into the window, and returns those that left it. */
function enter(
  context: WatcherContext,
  { endpoint }: RpcEndpointHandle,
  blocks: readonly BlockHeader[],
): BlockHeader[] {
  context.headEndpoint = endpoint;
  context.headEndpointAt = context.clock.now();
  context.newsAt = context.clock.now();
  return context.window.put(blocks);
}
