import { type BlockEvent, type BlockHeader, RpcClosedError } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";
import type { LostPayment } from "../../ledger/maintenance/close-payments.ts";
import { findBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { createFoundExecutions } from "../evidence/found-executions.ts";
import { createLateLogs } from "../evidence/late-logs.ts";
import { keepLease } from "../relay/lease-keeper.ts";
import { checkFinalBlocks, doubtGap, makeDue } from "./check-final-blocks.ts";
import { endOverdue } from "./end-overdue.ts";
import { followBlocks, takeBackBlocks } from "./follow-blocks.ts";
import { planPoll } from "./plan-poll.ts";
import type { BlockWatchOptions, WatchContext } from "./watch-context.ts";
import { watchFailed } from "./watch-failed.ts";

/** Work of one process for a network on behalf of all that share the ledger. */
export interface BlockWatch {
  /** Compares the ledger with the chain as it is known, and plans the next look at it. */
  followChain(): void;
  /** True if this process is the one of its ledger that reads the chain for all. */
  isReader(): boolean;
  stop(): Promise<void>;
}

/** A failed payment that is used is watched for so much longer, in milliseconds. */
const closingMs = 60_000;
/** More than any depth at which payments are not final. */
const maxCanonical = 2_000;

/**
 * Follows outcomes until they are final. It takes back those in a block that left the chain, and
 * marks those that are deep enough. It watches failed payments, whose authorizations any sender may
 * still execute.
 *
 * One process at a time does so for a network, under a lease. It is the one of a ledger that reads
 * the chain's head, as often as `planPoll` returns. Every write is guarded by the state before, so
 * two that overlap do no harm.
 */
export function startBlockWatch(options: BlockWatchOptions): BlockWatch {
  const { context, network } = options;
  const { ledger, clock, times, logger } = context;
  const stopping = new AbortController();
  const watch: WatchContext = {
    ...options,
    lease: undefined,
    searchedTo: new Map(),
    searchAgainAt: new Map(),
    found: createFoundExecutions({ now: () => clock.now() }),
    resumeAfter: "",
    closingLogs: createLateLogs({ now: () => clock.now(), awaitedMs: closingMs }),
    nextEndsAt: new Map(),
    closing: undefined,
    searching: undefined,
    search: undefined,
    stopping: stopping.signal,
    onLost: (lost) => reportLost(watch, lost),
    failedAt: undefined,
    overdueSince: undefined,
    overdueAfter: { queued: "", submitted: "" },
    explaining: { queued: undefined, submitted: undefined },
    left: [],
    canonical: new Set(),
    seenAt: new Map(),
    farSince: new Map(),
    deep: { isDue: false, nextAt: 0, isUnsure: false, checkedAt: 0, pauseMs: 0 },
    finalBlock: undefined,
    nextLook: { at: Number.POSITIVE_INFINITY, cancel: undefined },
    lookedAt: clock.now(),
    isLooking: false,
    isStopped: false,
    follow: () => working.trigger(),
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
      // The chain may have changed while no process looked.
      if (lease) makeDue(watch);
      if (lease) working.trigger();
      else schedulePoll(watch, Number.POSITIVE_INFINITY);
    },
  });
  const unsubscribe = network.watcher.subscribe(
    (event) => {
      recordEvent(watch, event);
      // A look follows the chain itself, once, and also where there is no event.
      if (!watch.isLooking) working.trigger();
    },
    { pollIntervalMs: Number.POSITIVE_INFINITY },
  );
  return {
    followChain: working.trigger,
    isReader: () => watch.lease !== undefined,
    async stop() {
      watch.isStopped = true;
      schedulePoll(watch, Number.POSITIVE_INFINITY);
      unsubscribe();
      stopping.abort(new RpcClosedError(network.chainId));
      await working.stop();
      const { searching, closing, explaining } = watch;
      await Promise.all([searching, closing, explaining.queued, explaining.submitted]);
      await keeper.stop();
    },
  };
}

function recordEvent(watch: WatchContext, event: BlockEvent): void {
  const { canonical, searchedTo, left, network } = watch;
  // What is searched now counts as far as what has been searched before.
  const keep = (to: bigint) => {
    if (watch.search && watch.search.keptTo > to) watch.search.keptTo = to;
  };
  if (event.type === "reorganised") {
    for (const { hash } of event.left) canonical.delete(hash);
    left.push(...event.left.map(({ number, hash }) => ({ number: Number(number), hash })));
    const [lowest] = event.left;
    const replaced = (event.left.at(-1)?.number ?? 0n) - (lowest?.number ?? 0n);
    if (replaced >= BigInt(network.finalAfter)) makeDue(watch);
    for (const [id, height] of searchedTo) {
      if (lowest && height >= lowest.number) searchedTo.set(id, lowest.number - 1n);
    }
    if (lowest) keep(lowest.number - 1n);
  }
  if (event.type === "advanced" || event.type === "reorganised") {
    for (const { hash } of event.entered) canonical.add(hash);
  }
  if (event.type === "reset") {
    canonical.clear();
    // Blocks that were final when they were searched stay, whatever came between the two looks.
    if (event.reason === "missed-blocks") {
      watch.deep.isUnsure = true;
      for (const [id, height] of searchedTo) {
        searchedTo.set(id, height - BigInt(network.finalAfter));
      }
      if (watch.search) keep(watch.search.head - BigInt(network.finalAfter));
    }
  }
  const isUnknown = event.type === "reset" && event.reason === "deep-reorganisation";
  if (isUnknown) makeDue(watch);
  if (isUnknown || event.type === "reachable") {
    canonical.clear();
    searchedTo.clear();
    keep(-1n);
  }
  if (event.type !== "advanced") watch.found.clear();
  if (event.type === "reorganised" || event.type === "reset") watch.finalBlock = undefined;
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
    // A failure may be permanent, such as that of one payment's search. The head is read all the
    // same.
    const { nextLook, lookedAt, context } = watch;
    schedulePoll(watch, Math.min(nextLook.at, lookedAt + context.times.settlingMs));
    watch.context.logger.warn(
      { err, network: watch.network.network },
      "the chain could not be followed; retrying",
    );
  }
}

async function followChain(watch: WatchContext): Promise<void> {
  const { context, network } = watch;
  const { clock, ledger, times } = context;
  // Finality is irreversible: a head that another process has sent is no evidence of depth.
  const header = await network.watcher.read(2 * times.idleMs);
  const head = header.number;
  await takeBackBlocks(watch, watch.left.splice(0));
  // First: blocks of another chain that became final would hide those that have left.
  const known = await findBlocks(ledger, network.network);
  if (known.some(({ number }) => number <= Number(head) - network.finalAfter)) doubtGap(watch);
  await checkFinalBlocks(watch, head);
  await followBlocks(watch, known, head);
  const undecided = await endOverdue({ context, network, watch, head: header });
  watch.overdueSince = undecided.queued ? (watch.overdueSince ?? clock.now()) : undefined;
  await watchFailed(watch, head);
  const now = clock.now();
  watch.seenAt = new Map(known.map(({ hash }) => [hash, watch.seenAt.get(hash) ?? now]));
  const open = known.filter(({ number }) => number > Number(head) - network.finalAfter);
  const at = planPoll({
    lookedAt: watch.lookedAt,
    head,
    blocks: open.map((block) => ({ ...block, seenAt: watch.seenAt.get(block.hash) ?? now })),
    hasOverdue: undecided.submitted,
    overdueSince: watch.overdueSince,
    failedAt: watch.failedAt,
    blockTimeMs: Math.max(network.blocks.blockTimeMs(), network.pollMs),
    finalAfter: network.finalAfter,
    settlingMs: times.settlingMs,
    idleMs: times.idleMs,
  });
  schedulePoll(watch, watch.deep.isDue ? Math.min(at, watch.deep.nextAt) : at);
}

/** Sales that were final, and have ended without their money. */
function reportLost({ context, network }: WatchContext, lost: readonly LostPayment[]): void {
  const { metrics, logger } = context;
  for (const { id, wasDelivered } of lost) {
    metrics.lost.inc({ network: network.network, delivered: String(wasDelivered) });
    logger.error(
      { network: network.network, payment: id, delivered: wasDelivered },
      "a payment is lost: a reorganisation deeper than final has undone it for good",
    );
  }
}

/** Sets the time of the next look in place of the one that is set. */
function schedulePoll(watch: WatchContext, at: number): void {
  const { nextLook, context } = watch;
  const { clock } = context;
  const wished = watch.isStopped || watch.lease === undefined ? Number.POSITIVE_INFINITY : at;
  if (nextLook.at === wished) return;
  nextLook.cancel?.();
  nextLook.cancel = undefined;
  nextLook.at = wished;
  if (wished === Number.POSITIVE_INFINITY) return;
  nextLook.cancel = clock.setTimer(() => void look(watch), Math.max(0, wished - clock.now()));
}

/** Reads the head, and makes this process follow the chain. A sweep schedules the next. */
async function look(watch: WatchContext): Promise<void> {
  const { nextLook, context, network, onLook } = watch;
  nextLook.at = Number.POSITIVE_INFINITY;
  watch.lookedAt = context.clock.now();
  try {
    const head = await readHead(watch);
    watch.follow();
    await onLook(head);
  } catch (err) {
    // The watcher's event has reported an outage.
    context.logger.debug({ err, network: network.network }, "the head could not be read");
    watch.follow();
  }
}

async function readHead(watch: WatchContext): Promise<BlockHeader> {
  watch.isLooking = true;
  try {
    return await watch.network.watcher.refresh();
  } finally {
    watch.isLooking = false;
  }
}
