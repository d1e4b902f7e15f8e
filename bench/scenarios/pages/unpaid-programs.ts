import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import autocannon from "autocannon";
import type { Figure } from "../../support/figure.ts";
import { percentile } from "../../support/measure.ts";
import type { SellerProcess } from "../../support/seller.ts";

const turns = Number(process.env.BENCH_PAIRS ?? 8);
const unpaidPerTurn = Number(process.env.BENCH_UNPAID ?? 8_000);
const connections = 32;
/** Another checkout of this repository, such as that of an earlier release. */
const { BENCH_BEFORE: before } = process.env;

interface Kind {
  name: string;
  seller: SellerProcess;
  /** Processor time of a request in each turn, in milliseconds. */
  times: number[];
}

/**
 * Unpaid GETs of programs: a paywall is not for them. Beside a seller without a paywall, and beside
 * that of another checkout in `BENCH_BEFORE`, in turns.
 */
export async function unpaidPrograms(options: {
  start(seller: {
    kind: "ours" | "bare";
    program?: string;
    hasPaywall?: boolean;
  }): Promise<SellerProcess>;
  folder: string;
}): Promise<Figure[]> {
  const { start, folder } = options;
  const kinds: Kind[] = [];
  const add = (name: string, seller: SellerProcess) => void kinds.push({ name, seller, times: [] });
  try {
    add("a bare route", await start({ kind: "bare" }));
    add("without a paywall", await start({ kind: "ours" }));
    add("with a paywall", await start({ kind: "ours", hasPaywall: true }));
    if (before !== undefined) {
      const source = pathToFileURL(join(before, "bench/support/seller-process.ts"));
      const program = await bundleProgram(source, join(folder, "before"), { minifies: true });
      add(before, await start({ kind: "ours", program }));
    }
    for (let turn = 0; turn <= turns; turn += 1) {
      // The first turn warms up. A seller's place in a turn changes.
      for (const kind of turn % 2 === 0 ? kinds : kinds.toReversed()) {
        const took = await processorMs(kind.seller);
        if (turn > 0) kind.times.push(took);
      }
    }
  } finally {
    for (const { seller } of kinds) await seller.stop();
  }
  const [bare, without, paywalled, earlier] = kinds;
  if (bare === undefined || without === undefined || paywalled === undefined) return [];
  return [
    compare(without, bare, {}),
    compare(paywalled, without, { atMost: 1.05 }),
    ...(earlier === undefined ? [] : [compare(without, earlier, { atMost: 1.05 })]),
  ];
}

function compare(kind: Kind, other: Kind, { atMost }: { atMost?: number }): Figure {
  const ratios = kind.times.map((value, turn) => value / (other.times[turn] ?? Number.NaN));
  return {
    scenario: `unpaid GET of a program, ${kind.name}, processor time`,
    ours: { value: percentile(kind.times, 0.5), unit: "ms" },
    ratio: {
      value: percentile(ratios, 0.5),
      to: `${percentile(other.times, 0.5).toFixed(3)} ms, ${other.name}`,
      turns: ratios,
    },
    ...(atMost !== undefined && { goal: { of: "ratio", atMost } }),
  };
}

async function processorMs(seller: SellerProcess): Promise<number> {
  const before = (await seller.usage()).processorSeconds;
  const url = `http://127.0.0.1:${seller.port}/weather`;
  await autocannon({ url, connections, amount: unpaidPerTurn });
  return (1_000 * ((await seller.usage()).processorSeconds - before)) / unpaidPerTurn;
}
