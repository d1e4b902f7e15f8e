import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet, startPostgres } from "@coinslot/devnet";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import { type Hex, toLowerHex } from "@coinslot/protocol";
import type { Figure } from "../../support/figure.ts";
import { percentile } from "../../support/measure.ts";
import { daysOfHistory, fillLedger, rareNetwork } from "./fill-ledger.ts";

type Engine = "sqlite" | "postgres";

/** Reads of operators on a large ledger: their times, and what they cost the buyers beside them. */
export async function operators(engine: Engine): Promise<Figure[]> {
  const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 1_000_000);
  const devnet = await startDevnet();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  const url = (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, "ledger.db")}`;
  const open = async () => {
    const { network, rpcUrl, accounts } = devnet;
    const facilitator = createFacilitator({
      networks: [
        { network, rpcUrls: [rpcUrl], relayer: { privateKey: accounts.relayer.privateKey } },
      ],
      ledger: url,
    });
    await facilitator.ready();
    return facilitator;
  };
  let facilitator = await open();
  try {
    await facilitator.close();
    await fillLedger(url, devnet, rows);
    facilitator = await open();
    const scenario = (name: string) => `${name}, ${rows.toLocaleString("en")} payments, ${engine}`;
    const figures: Figure[] = [];
    for (const [name, read] of Object.entries(readsOf(facilitator))) {
      const { ms, stallMs } = await time(read);
      figures.push({
        scenario: scenario(name),
        ours: { value: ms, unit: "ms", note: `event loop held ${stallMs.toFixed(0)} ms` },
      });
    }
    const alone = await buy(facilitator, devnet);
    const beside = await whileReading(facilitator, () => buy(facilitator, devnet));
    figures.push({
      scenario: scenario("a reservation beside reads of operators, p99"),
      ours: { value: percentile(beside, 0.99), unit: "ms" },
      ratio: { value: percentile(beside, 0.99) / percentile(alone, 0.99), to: "alone" },
      goal: { of: "ratio", atMost: 1.05 },
    });
    return figures;
  } finally {
    await facilitator.close();
    await postgres?.stop();
    await devnet.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const dayMs = 86_400_000;
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

const buysPerSecond = 50;
const buyingSeconds = 10;

/** Reserves and releases at a steady pace; milliseconds of each. */
async function buy(facilitator: CoinslotFacilitator, devnet: Devnet): Promise<number[]> {
  const times: number[] = [];
  const begun: Promise<void>[] = [];
  const started = performance.now();
  for (let index = 0; index < buysPerSecond * buyingSeconds; index += 1) {
    const due = started + (index * 1_000) / buysPerSecond;
    await sleep(Math.max(0, due - performance.now()));
    // From when it was due: a buyer who waits for the event loop waits, too.
    begun.push(buyOne(facilitator, devnet).then(() => void times.push(performance.now() - due)));
  }
  await Promise.all(begun);
  return times;
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

/** Operators read all the time meanwhile: sums, a month, a deep page. */
async function whileReading<Result>(
  facilitator: CoinslotFacilitator,
  work: () => Promise<Result>,
): Promise<Result> {
  let isDone = false;
  const reading = (async () => {
    while (!isDone) {
      await facilitator.stats();
      await readPages(facilitator, daysAgo(daysOfHistory / 2), 5);
      await facilitator.payments.list({ createdBefore: daysAgo(daysOfHistory - 1) });
    }
  })();
  try {
    return await work();
  } finally {
    isDone = true;
    await reading;
  }
}
