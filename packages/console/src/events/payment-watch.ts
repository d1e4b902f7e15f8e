import { createHash } from "node:crypto";
import type { Operation } from "@coinslot/facilitator";
import type { ReadMeter } from "./read-meter.ts";

/** State of the ledger that open consoles have. */
export type WatchedState = { kind: "changed"; version: string } | { kind: "stale"; code: string };

/** One read for all open consoles. */
export interface PaymentWatch {
  /** Begins to read, unless it has begun. */
  start(): void;
  /** Stops reading. */
  stop(): void;
}

/** Newest rows that are compared: their states move most. */
const watchedReads: readonly (readonly [string, Record<string, unknown>])[] = [
  ["payments.list", { limit: 50 }],
  ["refunds.list", { limit: 20 }],
];

/** A few changes a second are one. */
const minPauseMs = 1_000;
/**
 * Each change makes open pages read. So the next look waits until all reads since the last one are
 * 0.4% of the time. Of the processor time of a seller that is busy for a fifth of it, that is 2%.
 * The longest pause bounds the wait.
 */
const maxShare = 0.004;
const maxPauseMs = 10_000;

/**
 * Creates the watch. It reads while consoles are open, and tells of a change of the newest payments
 * and refunds.
 */
export function createPaymentWatch(options: {
  meter: ReadMeter;
  operations: ReadonlyMap<string, Operation>;
  onState: (state: WatchedState) => void;
  codeOf: (error: unknown) => string;
}): PaymentWatch {
  const { meter, operations, onState, codeOf } = options;
  const reads = watchedReads.flatMap(([name, argument]) => {
    const operation = operations.get(name);
    return operation === undefined ? [] : [{ operation, argument }];
  });
  let round: object | undefined;
  let timer: NodeJS.Timeout | undefined;
  let version: string | undefined;

  async function look(current: object): Promise<void> {
    const spentBefore = meter.spentMs();
    const state = await readState();
    if (round !== current) return;
    if (state.kind === "stale" || state.version !== version) onState(state);
    version = state.kind === "stale" ? undefined : state.version;
    rest(current, { since: performance.now(), spentBefore });
  }

  /** Waits for the next look. Pages read meanwhile, which makes the pause longer. */
  function rest(current: object, last: { since: number; spentBefore: number }): void {
    const fairMs = (meter.spentMs() - last.spentBefore) / maxShare;
    const pauseMs = Math.min(Math.max(minPauseMs, fairMs), maxPauseMs);
    const leftMs = last.since + pauseMs - performance.now();
    if (leftMs <= 0) return void look(current);
    timer = setTimeout(() => rest(current, last), leftMs);
    // A program that does not close its console may end all the same.
    timer.unref();
  }

  async function readState(): Promise<WatchedState> {
    try {
      const hash = createHash("sha256");
      for (const { operation, argument } of reads) {
        const result = await meter.operator.run(operation, argument);
        hash.update(JSON.stringify(result, (_name, value) => toText(value)));
      }
      return { kind: "changed", version: hash.digest("base64url").slice(0, 16) };
    } catch (error) {
      return { kind: "stale", code: codeOf(error) };
    }
  }

  return {
    start() {
      if (round !== undefined) return;
      round = {};
      void look(round);
    },
    stop() {
      round = undefined;
      version = undefined;
      clearTimeout(timer);
    },
  };
}

function toText(value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
