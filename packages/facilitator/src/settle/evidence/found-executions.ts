import type { Execution } from "../../schemes/scheme.ts";

/**
 * Executions that were found at the newest head, by payments. A watch looks once a second, and most
 * looks find the head of the last one.
 */
export interface FoundExecutions {
  /** Those that were found at this head, to which a search adds more. Another one has none yet. */
  at(head: bigint): Map<string, Execution>;
  /** Forgets all: a block has left the chain, or may have. */
  clear(): void;
}

/** After this time, the same head is searched again. */
const keptMs = 60_000;

/** @param options.now milliseconds */
export function createFoundExecutions({ now }: { now: () => number }): FoundExecutions {
  let last: { head: bigint; since: number; found: Map<string, Execution> } | undefined;
  return {
    at(head) {
      if (last === undefined || last.head !== head || now() - last.since >= keptMs) {
        last = { head, since: now(), found: new Map() };
      }
      return last.found;
    },
    clear() {
      last = undefined;
    },
  };
}
