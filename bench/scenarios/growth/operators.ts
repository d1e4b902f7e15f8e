import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet, startPostgres } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { type Hex, toLowerHex } from "@coinslot/protocol";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";
import type { Figure } from "../../support/figure.ts";
import { percentile } from "../../support/measure.ts";
import { fundPayers } from "../../support/signed-payments.ts";
import { mainThreadMs } from "../../support/thread-time.ts";
import { daysOfHistory, fillLedger, rareNetwork } from "./fill-ledger.ts";
import { dayMs, type Engine, openFacilitator, useLedger } from "./large-ledger.ts";

/** Alone and beside reads, in turns: a busy machine has faster and slower seconds. */
const pairs = Number(process.env.BENCH_PAIRS ?? 6);
const buysPerSecond = 50;
const buyingSeconds = 10;

/** Reads of operators on a large ledger: their times, and what they cost the buyers beside them. */
export async function operators(engine: Engine): Promise<Figure[]> {
  const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 1_000_000);
  const devnet = await startDevnet({ accountCount: 44 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  const create = async (name: string) =>
    (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, name)}`;
  try {
    await fundPayers(devnet);
    const [empty, large] = [await create("empty.db"), await create("ledger.db")];
    await (await openLedger({ url: large, processId: "creates" })).close();
    await fillLedger(large, devnet, rows);
    const figures = await measureLargeLedger(devnet, { empty, large });
    const size = `${rows.toLocaleString("en")} payments, ${engine}`;
    return figures.map((figure) => ({ ...figure, scenario: `${figure.scenario}, ${size}` }));
  } finally {
    await postgres?.stop();
    await devnet.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Measures a ledger from `fillLedger`, beside an empty one of the same engine. */
async function measureLargeLedger(
  devnet: Devnet,
  { empty, large }: { empty: string; large: string },
): Promise<Figure[]> {
  const alone = await useLedger(devnet, empty);
  const used = await useLedger(devnet, large);
  const facilitator = openFacilitator(devnet, large);
  try {
    await facilitator.ready();
    const figures: Figure[] = [
      {
        scenario: "start-up",
        ours: { value: used.startMs, unit: "ms" },
        ratio: { value: used.startMs / alone.startMs, to: "an empty ledger" },
      },
      {
        scenario: "settlement, processor",
        ours: { value: used.processorMs, unit: "ms" },
        ratio: { value: used.processorMs / alone.processorMs, to: "an empty ledger" },
      },
    ];
    for (const [scenario, read] of Object.entries(readsOf(facilitator))) {
      const { ms, stallMs } = await time(read);
      const note = `event loop held ${stallMs.toFixed(0)} ms`;
      figures.push({ scenario, ours: { value: ms, unit: "ms", note } });
    }
    return [...figures, ...(await buyBesideReads(facilitator, devnet))];
  } finally {
    await facilitator.close();
  }
}

/** Buyers alone, and beside reads of operators, in turns. */
async function buyBesideReads(facilitator: CoinslotFacilitator, devnet: Devnet): Promise<Figure[]> {
  const alone: Turn[] = [];
  const beside: Turn[] = [];
  let pages = 0;
  await buy(facilitator, devnet);
  for (let pair = 0; pair < pairs; pair += 1) {
    const turns = [
      async () => void alone.push(await buy(facilitator, devnet)),
      async () => {
        const during = await whileReading(facilitator, () => buy(facilitator, devnet));
        beside.push(during.result);
        pages += during.pages;
      },
    ];
    for (const turn of pair % 2 === 0 ? turns : turns.reverse()) await turn();
  }
  const besideAlone = (of: (turns: readonly Turn[]) => number) => ({
    value: of(beside) / of(alone),
    to: "alone",
    turns: beside.map((turn, index) => of([turn]) / of(alone.slice(index, index + 1))),
  });
  const p99 = (turns: readonly Turn[]) =>
    percentile(
      turns.flatMap(({ times }) => times),
      0.99,
    );
  const p50 = (turns: readonly Turn[]) =>
    percentile(
      turns.flatMap(({ times }) => times),
      0.5,
    );
  const processor = (turns: readonly Turn[]) =>
    turns.reduce((sum, { threadMs }) => sum + threadMs, 0) / turns.length / turnBuys;
  return [
    {
      scenario: "a reservation beside reads of operators, p99",
      ours: { value: p99(beside), unit: "ms", note: `${pages} pages of 1,000 meanwhile` },
      ratio: besideAlone(p99),
      goal: { of: "ratio", atMost: 1.05 },
    },
    {
      scenario: "a reservation beside reads of operators, p50",
      ours: { value: p50(beside), unit: "ms" },
      ratio: besideAlone(p50),
    },
    {
      scenario: "a reservation beside reads of operators, processor time of the buyers' thread",
      ours: { value: processor(beside), unit: "ms" },
      ratio: besideAlone(processor),
    },
  ];
}

const daysAgo = (days: number) => Date.now() - days * dayMs;

/** Reads that operators make, each at its own cost. */
function readsOf({ payments, stats }: CoinslotFacilitator): Record<string, () => Promise<unknown>> {
  const middle = daysOfHistory / 2;
  const payer = `0x${(7919).toString(16).padStart(40, "0")}` as const;
  return {
    "stats of all": () => stats(),
    "stats of 7 days and an hour": () => stats({ createdFrom: daysAgo(7) - 3_600_000 }),
    "page of submitted": () => payments.list({ state: "submitted" }),
    "page of failed": () => payments.list({ state: "failed" }),
    "page of failed, a month ago": () =>
      payments.list({ state: "failed", createdBefore: daysAgo(middle) }),
    "page of an hour, a month ago": () =>
      payments.list({ createdFrom: daysAgo(middle), createdBefore: daysAgo(middle) + 3_600_000 }),
    "page of a payer": () => payments.list({ payer }),
    "page of a network with each thousandth": () => payments.list({ network: rareNetwork }),
    "page of a network without payments": () => payments.list({ network: "eip155:1" }),
    "ten pages of 1,000 from a month ago": () => readPages({ payments }, daysAgo(middle), 10),
  };
}

/** As an export does. */
async function readPages(
  { payments }: Pick<CoinslotFacilitator, "payments">,
  createdBefore: number,
  pages: number,
): Promise<void> {
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const read = await payments.list({ createdBefore, limit: 1_000, cursor });
    cursor = read.nextCursor;
    if (cursor === undefined) return;
  }
}

async function time(read: () => Promise<unknown>): Promise<{ ms: number; stallMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await sleep(20);
  delay.reset();
  const started = performance.now();
  await read();
  const ms = performance.now() - started;
  await sleep(5);
  delay.disable();
  return { ms, stallMs: delay.max / 1e6 };
}

/** Purchases at a steady pace. */
interface Turn {
  /** Milliseconds of each. */
  times: number[];
  /** Processor time of the thread that serves them. */
  threadMs: number;
}

const turnBuys = buysPerSecond * buyingSeconds;

/** Reserves and releases at a steady pace. */
async function buy(facilitator: CoinslotFacilitator, devnet: Devnet): Promise<Turn> {
  const times: number[] = [];
  const begun: Promise<void>[] = [];
  const threadMs = mainThreadMs() ?? Number.NaN;
  const started = performance.now();
  for (let index = 0; index < turnBuys; index += 1) {
    const due = started + (index * 1_000) / buysPerSecond;
    await sleep(Math.max(0, due - performance.now()));
    // From when it was due: a buyer who waits for the event loop waits, too.
    begun.push(buyOne(facilitator, devnet).then(() => void times.push(performance.now() - due)));
  }
  await Promise.all(begun);
  return { times, threadMs: (mainThreadMs() ?? Number.NaN) - threadMs };
}

async function buyOne(facilitator: CoinslotFacilitator, devnet: Devnet): Promise<void> {
  const id = {
    network: devnet.network,
    asset: toLowerHex(devnet.token),
    payer: randomHex(20),
    nonce: randomHex(32),
  };
  const reserved = await facilitator.reserve({
    id,
    fingerprint: "GET /weather",
    value: 1_000n,
    validBefore: 4_000_000_000n,
    payTo: toLowerHex(devnet.accounts.seller.address),
  });
  if (reserved.state !== "reserved") throw new Error(`Not reserved: ${reserved.state}`);
  await facilitator.release(reserved.reservation, "handler_failed");
}

function randomHex(bytes: number): Hex {
  return `0x${randomBytes(bytes).toString("hex")}`;
}

/**
 * Operators read all the time meanwhile: a month's export, and with each ten pages sums and a deep
 * page.
 */
async function whileReading<Result>(
  facilitator: CoinslotFacilitator,
  work: () => Promise<Result>,
): Promise<{ result: Result; pages: number }> {
  let isDone = false;
  let pages = 0;
  const month = { createdFrom: daysAgo(daysOfHistory), createdBefore: daysAgo(daysOfHistory / 2) };
  const reading = (async () => {
    let cursor: string | undefined;
    while (!isDone) {
      const page = await facilitator.payments.list({ ...month, limit: 1_000, cursor });
      cursor = page.nextCursor;
      pages += 1;
      if (pages % 10 !== 0) continue;
      await facilitator.stats();
      await facilitator.payments.list({ createdBefore: daysAgo(daysOfHistory - 1) });
    }
  })();
  try {
    return { result: await work(), pages };
  } finally {
    isDone = true;
    await reading;
  }
}
