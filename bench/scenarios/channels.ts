import { mkdtemp, open, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { zeroHash } from "viem";
import { channelRequirements, createChannelBuyer, offerOf } from "../support/channel-buyers.ts";
import type { Figure } from "../support/figure.ts";
import { getPaid } from "../support/get-paid.ts";
import { percentile, timeEach } from "../support/measure.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import type { SellerOptions } from "../support/seller-process.ts";

const buyers = 128;
const turns = 6;
const alone = 300;

/** A seller, and what its buyers do in a turn. */
interface Side {
  seller: SellerProcess;
  /** Requests of each buyer before the first turn, and in each turn. */
  warmUp: number;
  perTurn: number;
  /** The headers of each buyer, in their order. */
  jobs: string[][];
  /** Milliseconds of processor time of a request, and requests a second, in each turn. */
  ms: number[];
  perSecond: number[];
}

/**
 * Paid GETs by payment channels, 128 buyers with one each, beside a bare route. The reference's own
 * channel server is a third side, with both of its stores. No chain.
 */
export async function channels(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const source = new URL("../support/seller-process.ts", import.meta.url);
  const program = await bundleProgram(source, folder, { minifies: true });
  const requirements = channelRequirements();
  const buyersOf = Array.from({ length: buyers }, () => createChannelBuyer(requirements));
  const started: SellerProcess[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: buyers, timeout: 2_000 });

  async function start(
    kind: SellerOptions["kind"],
    load: Pick<Side, "warmUp" | "perTurn"> & { ledger?: string },
  ): Promise<Side> {
    const { ledger = "", ...counts } = load;
    const seller = await startSellerProcess(program, {
      ...{ kind, ledger, requirements, rpcUrl: "", chainId: 9745 },
      relayer: { privateKey: zeroHash },
    });
    started.push(seller);
    // The bare route reads no header: any offer will do, and any voucher.
    const offer = kind === "bare" ? undefined : await offerOf(seller);
    const count = counts.warmUp + turns * counts.perTurn;
    const jobs = await Promise.all(
      buyersOf.map(async (buyer) => {
        const signed = await buyer.sign(offer, offer === undefined ? 1 : count);
        return Array.from({ length: count }, (_, index) => signed[index] ?? signed[0] ?? "");
      }),
    );
    return { seller, ...counts, jobs, ms: [], perSecond: [] };
  }

  async function take({ seller, jobs }: Side, count: number) {
    const each = jobs.map((headers) => headers.splice(0, count));
    const startedAt = performance.now();
    const before = (await seller.usage()).processorSeconds;
    await Promise.all(
      each.map(async (headers) => {
        for (const header of headers) await getPaid({ port: seller.port, agent, header });
      }),
    );
    const elapsedMs = performance.now() - startedAt;
    const seconds = (await seller.usage()).processorSeconds - before;
    const total = count * buyers;
    return { ms: (1_000 * seconds) / total, perSecond: (1_000 * total) / elapsedMs };
  }

  try {
    const ledger = `sqlite:${join(folder, "ledger.db")}`;
    // A turn takes more than a second: shorter ones measure how code and caches get warm again.
    const ours = await start("channels", { warmUp: 90, perTurn: 90, ledger });
    const bare = await start("bare", { warmUp: 90, perTurn: 180 });
    const load = { warmUp: 6, perTurn: 3 };
    const memory = await start("reference channels", load);
    const stored = { ...load, ledger: `file:${join(folder, "reference")}` };
    const files = await start("reference channels", stored);
    const sides = [ours, bare, memory, files];
    for (const side of sides) await take(side, side.warmUp);
    for (let turn = 0; turn < turns; turn += 1) {
      for (const side of sides) {
        const { ms, perSecond } = await take(side, side.perTurn);
        side.ms.push(ms);
        side.perSecond.push(perSecond);
      }
    }
    const mine = await createChannelBuyer(requirements).sign(await offerOf(ours.seller), alone);
    const buy =
      ({ seller }: Side) =>
      (header: string) =>
        getPaid({ port: seller.port, agent, header });
    const oneAtATime = {
      times: await timeEach(mine, buy(ours)),
      bareTimes: await timeEach(mine, buy(bare)),
      flushMs: await timeFlush(folder),
    };
    const bytes = (await ours.seller.usage()).memory;
    return [
      ...processorFigures(ours, bare, memory, files),
      ...rateFigures(ours, memory, files),
      ...figuresOfOne({ ...oneAtATime, bytes }),
    ];
  } finally {
    agent.destroy();
    for (const seller of started) await seller.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const median = (values: readonly number[]) => percentile(values, 0.5);

function processorFigures(ours: Side, bare: Side, memory: Side, files: Side): Figure[] {
  const extra = ours.ms.map((ms, turn) => ms - (bare.ms[turn] ?? Number.NaN));
  const at = (values: readonly number[], share: number) => percentile(values, share).toFixed(3);
  return [
    {
      scenario: "processor time of a paid GET by a channel, above a bare route",
      ours: {
        value: median(extra),
        unit: "ms",
        note: `${turns} turns, half of them ${at(extra, 0.25)} to ${at(extra, 0.75)}; ${at(ours.ms, 0.5)} in all, ${at(bare.ms, 0.5)} bare`,
      },
      goal: { of: "ours", atMost: 0.25 },
    },
    {
      scenario: "processor time of the seller for a paid GET by a channel, beside the memory store",
      ours: { value: median(ours.ms), unit: "ms" },
      reference: {
        value: median(memory.ms),
        unit: "ms",
        note: `${at(files.ms, 0.5)} with files`,
      },
      ratio: { value: median(ours.ms) / median(memory.ms) },
    },
  ];
}

function rateFigures(ours: Side, memory: Side, files: Side): Figure[] {
  const stores = [
    { name: "its file store", side: files, goal: 15 },
    { name: "its memory store", side: memory, goal: 10 },
  ];
  return stores.map(({ name, side, goal }) => ({
    scenario: `paid GET by channels, 128 at once, beside the reference with ${name}`,
    ours: { value: median(ours.perSecond), unit: "/s" },
    reference: { value: median(side.perSecond), unit: "/s" },
    ratio: {
      value: median(ours.perSecond) / median(side.perSecond),
      turns: ours.perSecond.map((rate, turn) => rate / (side.perSecond[turn] ?? Number.NaN)),
    },
    goal: { of: "ratio" as const, atLeast: goal },
  }));
}

function figuresOfOne(measured: {
  times: readonly number[];
  bareTimes: readonly number[];
  flushMs: number;
  bytes: number;
}): Figure[] {
  const { times, bareTimes, flushMs, bytes } = measured;
  const [all, bare] = [median(times), median(bareTimes)];
  return [
    {
      scenario: "paid GET by a channel, one at a time, p50, above a bare route and one fdatasync",
      ours: {
        value: all - bare - flushMs,
        unit: "ms",
        note: `${all.toFixed(3)} in all, ${bare.toFixed(3)} bare, ${flushMs.toFixed(3)} an fdatasync`,
      },
      goal: { of: "ours", atMost: 1 },
    },
    {
      scenario: "memory of a seller by channels under this load",
      ours: { value: bytes / 1e6, unit: "MB" },
      goal: { of: "ours", atMost: 200 },
    },
  ];
}

/** Median milliseconds of one fdatasync after a small write, on the disk of the ledger. */
async function timeFlush(folder: string): Promise<number> {
  const file = await open(join(folder, "flush"), "w");
  try {
    const times = await timeEach(Array.from({ length: 100 }), async () => {
      await file.write(Buffer.alloc(4_096));
      await file.datasync();
    });
    return percentile(times, 0.5);
  } finally {
    await file.close();
  }
}
