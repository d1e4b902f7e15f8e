import type { Cycle, Leg } from "./cycle.ts";
import type { Entry } from "./find-cycle.ts";

/** The latest cycles, within bounds of number and bytes. */
export interface EntryStore {
  entries: readonly Entry[];
  dropped: number;
  /** Adds a cycle; the oldest may go. */
  add(entry: Omit<Entry, "cycle" | "bytes"> & { start: Omit<Cycle, "id"> }): Entry;
  /** Counts the bytes of an ended leg; the oldest cycles may go. */
  weigh(entry: Entry, leg: Leg): void;
}

/** An empty store. */
export function createEntryStore(limits: { maxCycles: number; maxBytes: number }): EntryStore {
  const { maxCycles, maxBytes } = limits;
  const entries: Entry[] = [];
  let bytes = 0;
  let nextId = 1;
  let dropped = 0;

  function dropOldest(): void {
    bytes -= entries.shift()?.bytes ?? 0;
    dropped += 1;
  }

  return {
    entries,
    get dropped() {
      return dropped;
    },
    add({ start, ...marks }) {
      const entry: Entry = { ...marks, cycle: { id: nextId, ...start }, bytes: 0 };
      nextId += 1;
      entries.push(entry);
      if (entries.length > maxCycles) dropOldest();
      return entry;
    },
    weigh(entry, leg) {
      const size = JSON.stringify(leg).length;
      entry.bytes += size;
      if (!entries.includes(entry)) return;
      bytes += size;
      while (bytes > maxBytes && entries.length > 0) dropOldest();
    },
  };
}
