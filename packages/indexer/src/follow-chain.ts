import { RpcClosedError, sleep } from "@coinslot/chain";
import { isDatabaseError } from "@coinslot/storage";
import type { ChainContext } from "./chain-context.ts";
import { findOpenings } from "./find-openings.ts";
import { indexHistory } from "./history/index-history.ts";
import { applySyncEvent, readTransfers } from "./live/apply-sync-event.ts";
import { look } from "./live/look.ts";
import type { SyncEvent } from "./live/sync-event.ts";
import { readHeaders } from "./rpc/block-header.ts";
import { readHead } from "./rpc/read-head.ts";
import { addTransfers } from "./store/add-transfers.ts";
import { readChain, updateChain } from "./store/chain-row.ts";
import { readCoverage } from "./store/coverage.ts";
import type { KnownToken } from "./store/known-token.ts";
import { PenLostError } from "./store/pen.ts";
import { type BlockId, extendWindow, readWindow } from "./store/window.ts";
import { joinBatches } from "./transfer-log/join-batches.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** How often others are told that a chain without new blocks is being looked at. */
const TELL_EVERY_MS = 1_000;

/**
 * Follows a chain until the signal is aborted, or it is stopped. Every step begins with what the database holds, and
 * leaves it whole, so any failure is survived by beginning the next step. Rejects when the pen is lost.
 */
export async function followChain(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, logger, clock } = context;
  const filling = createFilling(context, signal);
  let headEndpoint: number | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;
  let pauseMs = FIRST_PAUSE_MS;
  let areOpeningsKnown = false;
  try {
    while (!signal.aborted) {
      try {
        if (!areOpeningsKnown) await findOpenings(context, signal);
        areOpeningsKnown = true;
        const isDone = await step();
        if (isDone) return;
        pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        if (signal.aborted || error instanceof RpcClosedError) return;
        if (error instanceof PenLostError) throw error;
        logger.warn({ chain: chain.name, error }, "Following the chain failed, and is tried again");
        await tellProblem(context, error);
        await sleep(clock, pauseMs, signal).catch(() => undefined);
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      }
    }
  } finally {
    await filling.ended();
  }

  /** One step of history or of live. Returns whether the chain is stopped. */
  async function step(): Promise<boolean> {
    const window = await readWindow(context.database.kysely, chain.chainId);
    if (!isNotEmpty(window)) {
      await catchUp(context, signal);
      return false;
    }
    const { event, endpoint } = await lookAtChain(window);
    // Before a rollback there is nothing to join: the blocks of the window may be nowhere any more.
    const isSound = event.type === "unchanged" || event.type === "advanced";
    const live = isSound ? await joinTokens(context, { window, signal, filling }) : [];
    if (event.type === "unchanged" && clock.now() - toldAt < TELL_EVERY_MS) {
      await sleep(clock, chain.pollIntervalMs, signal);
      return false;
    }
    await applySyncEvent(context, event, { window, tokens: live, signal });
    toldAt = clock.now();
    if (event.type === "advanced") headEndpoint = endpoint;
    return event.type === "beyond-finality";
  }

  async function lookAtChain(window: readonly [BlockId, ...BlockId[]]) {
    const { pool } = context;
    const { event, endpoint } = await pool.onEndpoint(
      async (handle) => ({
        event: await look(handle, { window, chain, headEndpoint }),
        endpoint: handle.endpoint,
      }),
      { signal },
    );
    if (event.type !== "beyond-finality") return { event, endpoint };
    // One broken endpoint must not stop a chain: any other that knows our final block is followed instead.
    for (const other of pool.endpoints) {
      if (other.endpoint === endpoint) continue;
      const found: SyncEvent | undefined = await look(other, {
        window,
        chain,
        headEndpoint: undefined,
      }).catch(() => undefined);
      if (found !== undefined && found.type !== "beyond-finality")
        return { event: found, endpoint: other.endpoint };
    }
    return { event, endpoint };
  }
}

type Filling = ReturnType<typeof createFilling>;

/** History beside live: what tokens miss that were added, or whose start block was lowered. One run at a time. */
function createFilling(context: ChainContext, signal: AbortSignal) {
  const { chain, logger, clock } = context;
  let running: Promise<void> | undefined;
  let failure: unknown;

  async function run(tokens: readonly KnownToken[], next: number): Promise<void> {
    try {
      await indexHistory(context, { tokens, next, announcedFrom: undefined, signal });
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
      if (error instanceof PenLostError) return;
      logger.warn({ chain: chain.name, error }, "Filling a gap failed, and is tried again");
      await sleep(clock, FIRST_PAUSE_MS, signal).catch(() => undefined);
    }
  }

  return {
    /** Begins to index what these tokens miss below `next`, unless that is being done. */
    begin(tokens: readonly KnownToken[], next: number): void {
      if (failure instanceof PenLostError) throw failure;
      running ??= run(tokens, next).finally(() => {
        running = undefined;
      });
    },
    isRunning: () => running !== undefined,
    ended: () => running ?? Promise.resolve(),
  };
}

/**
 * From history to live: indexes all that is final now, and lays the base of the window on top. What became final
 * meanwhile is live's to read, or, if that is much, the first look leads back here: so a chain that is as fast as we
 * are does not keep us in history for ever.
 */
async function catchUp(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { chain, database, pen, pool, clock } = context;
  const { chainId } = chain;
  const { dialect } = database;
  const { announced_from } = await readChain(database, chainId);
  const head = await pool.onEndpoint((endpoint) => readHead(endpoint, chain), { signal });
  const { latest, finalized } = head;
  const news = {
    state: "history",
    head: { number: latest.number, timestampMs: latest.timestampMs, finalized },
    isProgress: false,
  } as const;
  await pen.write((transaction) => updateChain(transaction, dialect, { chainId, news }));

  const { leading, furthest } = await findLeadingTokens(context);
  await indexHistory(context, {
    tokens: leading,
    next: finalized + 1,
    announcedFrom: announced_from ?? undefined,
    signal,
  });
  // An endpoint that lags knows less than is indexed: no ground to build on.
  if (furthest > finalized + 1) return sleep(clock, chain.pollIntervalMs, signal);
  const [base] = await pool.onEndpoint((endpoint) => readHeaders(endpoint, [finalized]), {
    minBlock: BigInt(finalized),
    signal,
  });
  if (base === undefined) return;
  await pen.write(async (transaction) => {
    await extendWindow(transaction, chainId, [base]);
    const announcedFrom = announced_from ?? finalized + 1;
    await updateChain(transaction, dialect, {
      chainId,
      news: { state: "live", problem: null, announced_from: announcedFrom, isProgress: true },
    });
  });
}

/**
 * The tokens that decide when live begins: those that are furthest, and those that start above them. The others were
 * added later, and are filled beside live, lest they keep everybody waiting.
 */
async function findLeadingTokens({ database, tokens }: ChainContext) {
  const coverage = await readCoverage(database.kysely, tokens);
  const nextOf = ({ id }: KnownToken) => coverage.get(id)?.at(-1)?.next ?? 0;
  const furthest = Math.max(...tokens.map(nextOf));
  const leading = tokens.filter((token) => Math.max(nextOf(token), token.startBlock) >= furthest);
  return { leading, furthest };
}

/**
 * Lets tokens join live. Returns those that are indexed up to the newest block of the window. One whose coverage ends
 * within the window gets the blocks in between by their hashes; one that misses final blocks has to be filled first.
 */
async function joinTokens(
  context: ChainContext,
  {
    window,
    signal,
    filling,
  }: {
    window: readonly [BlockId, ...BlockId[]];
    signal: AbortSignal;
    filling: Filling;
  },
): Promise<readonly KnownToken[]> {
  const { chain, database, pen, tokens } = context;
  const [base] = window;
  const next = (window.at(-1) ?? base).number + 1;
  const coverage = await readCoverage(database.kysely, tokens);
  const incomplete = tokens.filter(({ id, startBlock }) => {
    const [first, ...others] = coverage.get(id) ?? [];
    const isWhole = first !== undefined && first.from <= startBlock && others.length === 0;
    return startBlock <= base.number && !(isWhole && first.next > base.number);
  });
  if (incomplete.length > 0) filling.begin(incomplete, base.number + 1);

  const live: KnownToken[] = [];
  for (const token of tokens) {
    const covered = coverage.get(token.id)?.at(-1)?.next ?? token.startBlock;
    const from = Math.max(covered, token.startBlock);
    if (from >= next) live.push(token);
    // While it is filled, its coverage may end at the base of a window that has moved on.
    if (from >= next || from <= base.number) continue;
    const blocks = window.filter(({ number }) => number >= from);
    const batch = joinBatches(await readTransfers(context, blocks, { tokens: [token], signal }));
    await pen.write((transaction) =>
      addTransfers(transaction, database.dialect, {
        chainId: chain.chainId,
        tokens: [token],
        range: { from, next },
        batch,
        isAnnounced: false,
      }),
    );
    live.push(token);
  }
  return live;
}

/** Best effort: what is wrong may be the database. */
async function tellProblem(
  { chain: { chainId }, database, pen }: ChainContext,
  error: unknown,
): Promise<void> {
  const problem = error instanceof Error ? error.message : String(error);
  const news = { problem, isProgress: false };
  try {
    await pen.write((transaction) => updateChain(transaction, database.dialect, { chainId, news }));
  } catch (failure) {
    if (!isDatabaseError(failure)) throw failure;
  }
}

function isNotEmpty(window: readonly BlockId[]): window is readonly [BlockId, ...BlockId[]] {
  return window.length > 0;
}
