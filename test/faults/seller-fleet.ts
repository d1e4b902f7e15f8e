import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./seeded-random.ts";
import type { WorkerMessage } from "./worker-messages.ts";
import { type SellerProgram, startWorker, type WorkerProcess } from "./worker-process.ts";

/** Sellers that share a ledger, each started again when it dies. */
export interface SellerFleet {
  /** The living processes, the frozen ones among them. */
  workers(): readonly WorkerProcess[];
  /** A living process. Waits for one. */
  anyone(): Promise<WorkerProcess>;
  /** Resolves at the next death of any of them. */
  nextDeath(): Promise<void>;
  /** Number of deaths. */
  deaths(): number;
  /** Resolves when this many are alive. */
  waitFor(count: number): Promise<void>;
  /** Ends them for good. */
  stop(): Promise<void>;
}

/**
 * A start may fail by a faulty answer; this many consecutive failures are the seller's own fault.
 */
const maxFailedStarts = 20;
const lookMs = 20;

/** Starts this many sellers, and resolves when all of them accept payments. */
export async function startSellerFleet(options: {
  count: number;
  program: SellerProgram;
  random: Random;
  onMessage: (message: WorkerMessage) => void;
}): Promise<SellerFleet> {
  const { count, program, random, onMessage } = options;
  const alive = new Set<WorkerProcess>();
  let mourners: (() => void)[] = [];
  let deaths = 0;
  let isStopped = false;
  let fault: unknown;
  const places = Array.from({ length: count }, () =>
    keepPlace().catch((error: unknown) => {
      fault ??= error;
    }),
  );
  await waitFor(count);

  async function keepPlace(): Promise<void> {
    for (let failedStarts = 0; !isStopped; ) {
      let started: WorkerProcess;
      try {
        started = await startWorker(program, onMessage);
        failedStarts = 0;
      } catch (error) {
        failedStarts += 1;
        if (failedStarts === maxFailedStarts) throw error;
        continue;
      }
      alive.add(started);
      if (isStopped) await started.kill();
      await started.gone;
      alive.delete(started);
      deaths += 1;
      const listeners = mourners;
      mourners = [];
      for (const listener of listeners) listener();
    }
  }

  async function waitFor(wanted: number): Promise<void> {
    while (alive.size < wanted) {
      if (fault !== undefined) throw fault;
      await sleep(lookMs);
    }
  }

  return {
    workers: () => [...alive],
    async anyone() {
      await waitFor(1);
      const [first, ...others] = alive;
      if (first === undefined) throw new Error("No seller runs.");
      return random.pick([first, ...others]);
    },
    nextDeath: () => new Promise((resolve) => mourners.push(resolve)),
    deaths: () => deaths,
    waitFor,
    async stop() {
      isStopped = true;
      await Promise.all([...alive].map((each) => each.kill()));
      await Promise.all(places);
    },
  };
}
