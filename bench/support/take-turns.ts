import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import { timeConcurrently } from "./measure.ts";
import { untilAtRest } from "./until-at-rest.ts";

/** One side of a comparison. */
export interface Side<Job> {
  /** Enough for the warm-up and every turn. */
  jobs: Job[];
  /** Warm-up runs before the measurement, for the JIT compiler and the connections. */
  warmUp: number;
  perTurn: number;
  run: (job: Job) => Promise<void>;
  /** Processor time that its process has used until now. */
  processorSeconds?: () => Promise<number>;
  /** Starts background work beside its turns, and returns a function that ends it. */
  beside?: () => () => void;
}

/** Jobs per second over all turns. */
export interface Rates {
  ours: number;
  reference: number;
  /** Processor time of a job in milliseconds; 0 where a side does not measure it. */
  processorMs: { ours: number; reference: number };
  /** Of these two, over all turns and in each. */
  ratio: { value: number; turns: number[] };
}

export const turns = 4;
const atOnce = 128;
const maxTurnMs = 120_000;

/**
 * Number of jobs that each side does in a second, 128 at once. They take turns, since the machine
 * has faster and slower minutes. Moreover, anvil takes longer for a block with every payment that
 * its token has seen. A turn begins on a chain at rest: no side waits for the mining of the other's
 * transactions.
 */
export async function takeTurns<Job>(
  devnet: Devnet,
  { ours, reference }: { ours: Side<Job>; reference: Side<Job> },
): Promise<Rates> {
  const take = async (name: string, side: Side<Job>, count: number) => {
    await untilAtRest(devnet);
    return timeTurn(name, side, count);
  };
  await take("ours", ours, ours.warmUp);
  await take("reference", reference, reference.warmUp);
  const seconds = { ours: 0, reference: 0 };
  const processor = { ours: 0, reference: 0 };
  const ratios: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const before = await usedBy({ ours, reference });
    const oursTook = await take("ours", ours, ours.perTurn);
    const between = await usedBy({ ours, reference });
    const referenceTook = await take("reference", reference, reference.perTurn);
    const after = await usedBy({ ours, reference });
    processor.ours += between.ours - before.ours;
    processor.reference += after.reference - between.reference;
    ratios.push(ours.perTurn / oursTook / (reference.perTurn / referenceTook));
    seconds.ours += oursTook;
    seconds.reference += referenceTook;
  }
  const ourRate = (turns * ours.perTurn) / seconds.ours;
  const theirRate = (turns * reference.perTurn) / seconds.reference;
  return {
    ours: ourRate,
    reference: theirRate,
    processorMs: {
      ours: (1000 * processor.ours) / (turns * ours.perTurn),
      reference: (1000 * processor.reference) / (turns * reference.perTurn),
    },
    ratio: { value: ourRate / theirRate, turns: ratios },
  };
}

async function usedBy<Job>({ ours, reference }: { ours: Side<Job>; reference: Side<Job> }) {
  return {
    ours: (await ours.processorSeconds?.()) ?? 0,
    reference: (await reference.processorSeconds?.()) ?? 0,
  };
}

/** Resolves to the seconds that it took. */
async function timeTurn<Job>(name: string, side: Side<Job>, count: number): Promise<number> {
  const { jobs, run, beside } = side;
  const end = beside?.();
  const ended = new AbortController();
  const tooLate = sleep(maxTurnMs, undefined, { signal: ended.signal }).then(() => {
    throw new Error(`The turn of ${name} has not ended after ${maxTurnMs / 1000} s.`);
  });
  try {
    return await Promise.race([timeConcurrently(jobs.splice(0, count), atOnce, run), tooLate]);
  } finally {
    ended.abort();
    end?.();
    await tooLate.catch(() => {});
  }
}
