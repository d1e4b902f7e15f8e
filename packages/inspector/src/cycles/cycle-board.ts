import { randomBytes } from "node:crypto";
import type { Observer } from "../proxy/observer.ts";
import type { Cycle } from "./cycle.ts";
import { createEntryStore } from "./entry-store.ts";
import { createLookQueue } from "./look-queue.ts";
import { type BoardContext, observeExchange, type ReadChain } from "./observe-exchange.ts";

/** Bounds of what is kept. */
export interface BoardLimits {
  /** Cycles; the oldest go first. Default 1,000. */
  maxCycles?: number | undefined;
  /** Bytes of all cycles, as JSON. Default 32 MiB. */
  maxBytes?: number | undefined;
  /** Recorded bytes of each body. Default 64 KiB. */
  maxBodyBytes?: number | undefined;
}

/** Exchanges and cycles that are not kept. */
export interface BoardCounts {
  /** Exchanges without an offer or a payment. */
  passed: number;
  /** Cycles that made room for later ones. */
  dropped: number;
}

/** The cycles that have passed. */
export interface CycleBoard extends Observer {
  /** Oldest first. */
  cycles(): readonly Cycle[];
  find(id: number): Cycle | undefined;
  counts(): BoardCounts;
  /** Calls `listener` after each change of a cycle; returns the end of that. */
  subscribe(listener: (id: number) => void): () => void;
  /** Resolves when all signatures and receipts that have passed are looked at. */
  settled(): Promise<void>;
}

/**
 * Joins exchanges into cycles, and keeps the latest ones. It keeps no signature, key or
 * cookie: they are removed before a leg is stored.
 */
export function createCycleBoard(
  options: BoardLimits & { readChain?: ReadChain | undefined } = {},
): CycleBoard {
  const { maxCycles = 1_000, maxBytes = 32 * 2 ** 20, maxBodyBytes = 65_536, readChain } = options;
  const listeners = new Set<(id: number) => void>();
  const store = createEntryStore({ maxCycles, maxBytes });
  const looks = createLookQueue();
  let passed = 0;
  const context: BoardContext = {
    store,
    looks,
    maxBodyBytes,
    salt: randomBytes(16),
    readChain,
    changed({ cycle }) {
      for (const listener of listeners) listener(cycle.id);
    },
    pass() {
      passed += 1;
    },
  };
  return {
    open: (head) => observeExchange(context, head),
    cycles: () => store.entries.map(({ cycle }) => cycle),
    find: (id) => store.entries.find(({ cycle }) => cycle.id === id)?.cycle,
    counts: () => ({ passed, dropped: store.dropped }),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    settled: looks.settled,
  };
}
