import type { Operator } from "@coinslot/facilitator";

/** An operator whose reads are timed. */
export interface ReadMeter {
  readonly operator: Operator;
  /** Milliseconds of all reads that have ended, added up. */
  spentMs(): number;
}

/** Times the reads of an operator: those of open pages, and those of the watch. */
export function createReadMeter(operator: Operator): ReadMeter {
  let spentMs = 0;
  return {
    operator: {
      async run(operation, ...rest) {
        const startedAt = performance.now();
        try {
          return await operator.run(operation, ...rest);
        } finally {
          if (operation.access === "read") spentMs += performance.now() - startedAt;
        }
      },
    },
    spentMs: () => spentMs,
  };
}
