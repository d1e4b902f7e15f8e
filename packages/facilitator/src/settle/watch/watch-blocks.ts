import type { BlockEvent } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import { findBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { keepLease } from "../relay/lease-keeper.ts";
import { endOverdue } from "./end-overdue.ts";
import { confirmFinality, takeBackBlocks, undoUnseenBlocks } from "./follow-blocks.ts";
import type { BlockWatchOptions, WatchContext } from "./watch-context.ts";
import { watchFailed } from "./watch-failed.ts";

/** Work of one process for a network on behalf of all that share the ledger. */
export interface BlockWatch {
  /** Polls now, besides at every new block. */
  pollChain(): void;
  stop(): Promise<void>;
}

/** More than any depth at which payments are not final. */
const maxCanonical = 2_000;

/**
 * Follows outcomes until they are final. It takes back those in a block that left the chain, and
 * marks those that are deep enough. It watches failed payments, whose authorizations any sender may
 * still execute.
 *
 * One process at a time does so for a network, under a lease. Every write is guarded by the state
 * before, so two that overlap do no harm.
 */
export function startBlockWatch(options: BlockWatchOptions): BlockWatch {
  const { context, network } = options;
  const { ledger, clock, times, logger } = context;
  const watch: WatchContext = {
    ...options,
    lease: undefined,
    searchedTo: new Map(),
    resumeAfter: "",
    left: [],
    canonical: new Set(),
  };
  const working = createSingleFlight(() => tryToFollowChain(watch));
  const keeper = keepLease({
    leases: ledger.leases,
    name: `watch:${network.network}`,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    logger,
    onChange(lease) {
      watch.lease = lease;
      watch.canonical.clear();
      if (lease) working.trigger();
    },
  });
  const unsubscribe = network.watcher.subscribe((event) => {
    recordEvent(watch, event);
    working.trigger();
  });
  return {
    pollChain: working.trigger,
    async stop() {
      unsubscribe();
      await working.stop();
      await keeper.stop();
    },
  };
}

function recordEvent({ canonical, searchedTo, left }: WatchContext, event: BlockEvent): void {
  if (event.type === "reorganised") {
    for (const { hash } of event.left) canonical.delete(hash);
    left.push(...event.left.map(({ hash }) => hash));
    const [lowest] = event.left;
    for (const [id, height] of searchedTo) {
      if (lowest && height >= lowest.number) searchedTo.set(id, lowest.number - 1n);
    }
  }
  if (event.type === "advanced" || event.type === "reorganised") {
    for (const { hash } of event.entered) canonical.add(hash);
  }
  if (event.type === "reset" || event.type === "reachable") {
    canonical.clear();
    searchedTo.clear();
  }
  for (const oldest of canonical) {
    if (canonical.size <= maxCanonical) break;
    canonical.delete(oldest);
  }
}

async function tryToFollowChain(watch: WatchContext): Promise<void> {
  if (watch.lease === undefined) return;
  try {
    await followChain(watch);
  } catch (err) {
    watch.canonical.clear();
    watch.context.logger.warn(
      { err, network: watch.network.network },
      "the chain could not be followed; retrying",
    );
  }
}

async function followChain(watch: WatchContext): Promise<void> {
  const { context, network } = watch;
  const head = network.watcher.latest() ?? (await network.watcher.refresh());
  await takeBackBlocks(watch, watch.left.splice(0));
  const known = await findBlocks(context.ledger, network.network);
  await undoUnseenBlocks(watch, known, head.number);
  await confirmFinality(watch, known, head.number);
  await endOverdue({ context, network, head: head.number });
  await watchFailed(watch, head.number);
}
