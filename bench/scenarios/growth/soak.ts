import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet, startPostgres } from "@coinslot/devnet";
import { eip3009Abi, encodePaymentPayload } from "@coinslot/protocol";
import {
  type CountedStatements,
  compareStatements,
  countedBetween,
} from "../../support/compare-statements.ts";
import { startCountingProxy } from "../../support/counting-proxy.ts";
import type { Figure } from "../../support/figure.ts";
import { getPaid } from "../../support/get-paid.ts";
import { percentile, timeConcurrently } from "../../support/measure.ts";
import type { SellerProcess } from "../../support/seller.ts";
import { type SellerFleet, startSellerFleet } from "../../support/seller-fleet.ts";
import { fundPayers, signPayment, signPayments } from "../../support/signed-payments.ts";

const sellerCount = 3;
const minutes = Number(process.env.BENCH_SOAK_MINUTES ?? 3);
/** A seller is replaced this often, and the usage of all is read. */
const replaceMs = Math.min(120_000, (minutes * 60_000) / 9);
const sampleMs = Math.min(30_000, (minutes * 60_000) / 16);
/** Payments for the measurement of the capacity. */
const capacityPayments = 3_072;
/** Purchases a second, on a machine whose capacity cannot be measured for its other work. */
const fixedPerSecond = Number(process.env.BENCH_SOAK_PER_SECOND ?? 0);
/** Number of statements that are printed, those whose frequency has changed most. */
const printed = Number(process.env.BENCH_SOAK_STATEMENTS ?? 0);
/** Time for which a buyer repeats one payment. */
const patienceMs = 60_000;
const logRange = 50n;

/** Usage of all sellers together, over one interval. */
interface Sample {
  memory: number;
  /** Files and sockets without `connections`. */
  descriptors: number;
  /** Of buyers: as many as wait at once. */
  connections: number;
  statements: number;
  /** Milliseconds until half of its buyers were served. */
  p50: number;
}

/**
 * Three sellers on one PostgreSQL, at half of what they can sell, one of them replaced every two
 * minutes. `BENCH_SOAK_MINUTES=30` is the long run; `BENCH_SOAK_PER_SECOND` sets the rate.
 */
export async function soak(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 44, blockTimeSeconds: 1 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  let fleet: SellerFleet | undefined;
  try {
    await fundPayers(devnet);
    const firstBlockMs = await timeBlock(devnet);
    const database = await postgres.createDatabase();
    const proxy = await startCountingProxy(database.url);
    fleet = await startSellerFleet({ devnet, folder, ledger: proxy.url, count: sellerCount });
    const sellers = fleet.living;
    const perSecond = fixedPerSecond || (await measureCapacity(devnet, sellers)) / 2;
    const load = startBuyers({ devnet, sellers, perSecond });
    const samples: Sample[] = [];
    const endAt = performance.now() + minutes * 60_000;
    let replaceAt = performance.now() + replaceMs;
    let before = { statements: proxy.statements(), bought: 0, waited: 0 };
    const counted: CountedStatements[] = [];
    while (performance.now() < endAt) {
      await sleep(sampleMs);
      const waited = load.times.length;
      const now = { statements: proxy.statements(), bought: load.bought(), waited };
      const usages = await Promise.all(sellers.map((seller) => seller.usage()));
      const sample = {
        memory: sum(usages.map(({ memoryNow }) => memoryNow)),
        descriptors: sum(usages.map(({ descriptors, connections }) => descriptors - connections)),
        connections: sum(usages.map(({ connections }) => connections)),
        statements: (now.statements - before.statements) / (now.bought - before.bought),
        p50: percentile(load.times.slice(before.waited), 0.5),
      };
      samples.push(sample);
      if (printed > 0) counted.push({ texts: proxy.byText(), payments: now.bought });
      before = now;
      console.error(describe(sample, now.bought));
      if (performance.now() < replaceAt) continue;
      replaceAt += replaceMs;
      await fleet.retireOldest();
      await fleet.start();
    }
    printChanged(counted);
    const purchases = await load.stop();
    const used = await usedNonces(devnet);
    const lastBlockMs = await timeBlock(devnet);
    await proxy.close();
    return [
      {
        scenario: `soak of ${minutes} minutes: purchases`,
        ours: {
          value: purchases.length,
          unit: "",
          note: `${perSecond.toFixed(0)} /s, p99 ${percentile(load.times, 0.99).toFixed(0)} ms`,
        },
      },
      {
        scenario: "soak: purchases that were had and not paid",
        ours: {
          value: purchases.filter(({ nonce, isHad }) => isHad && !used.has(nonce)).length,
          unit: "",
        },
        goal: { of: "ours", atMost: 0 },
      },
      {
        scenario: `soak: purchases that were paid and not had in ${patienceMs / 1_000} s`,
        ours: {
          value: purchases.filter(({ nonce, isHad }) => !isHad && used.has(nonce)).length,
          unit: "",
        },
        goal: { of: "ours", atMost: 0 },
      },
      {
        scenario: "soak: payments that were brought more than once",
        ours: { value: purchases.filter(({ attempts }) => attempts > 1).length, unit: "" },
      },
      {
        scenario: "soak: time in which the devnet makes a block, at the end",
        ours: { value: lastBlockMs, unit: "ms" },
        ratio: { value: lastBlockMs / firstBlockMs, to: "the beginning" },
      },
      flatness("memory of all sellers", samples, "memory", { unit: "MB", divisor: 1e6 }),
      flatness("descriptors of all sellers without buyers' connections", samples, "descriptors", {
        unit: "files",
      }),
      flatness("statements for a payment", samples, "statements", { unit: "statements" }),
    ];
  } finally {
    await fleet?.stop();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/**
 * Median of the time in which the devnet makes a block. It reads its whole state for that, so each
 * used nonce makes it longer. Buyers wait for it, and more of them wait at once.
 */
async function timeBlock({ client }: Devnet): Promise<number> {
  const times: number[] = [];
  for (let block = 0; block < 9; block += 1) {
    const began = performance.now();
    await client.mine({ blocks: 1 });
    times.push(performance.now() - began);
  }
  return percentile(times, 0.5);
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function describe(sample: Sample, bought: number): string {
  const { memory, descriptors, connections, statements, p50 } = sample;
  return `${bought} bought, ${(memory / 1e6).toFixed(0)} MB, ${descriptors} descriptors and ${connections} connections, ${statements.toFixed(2)} statements each, p50 ${p50.toFixed(0)} ms`;
}

/**
 * Statements of 1,000 payments in the second quarter of a run and in its last, on standard error.
 */
function printChanged(counted: readonly CountedStatements[]): void {
  const quarter = Math.floor(counted.length / 4);
  const [first, second, third, last] = [quarter - 1, 2 * quarter - 1, -quarter - 1, -1].map(
    (index) => counted.at(index),
  );
  if (!first || !second || !third || !last) return;
  console.error("statements of 1,000 payments in the second quarter, and in the last");
  const times = [countedBetween(first, second), countedBetween(third, last)];
  for (const line of compareStatements(times, printed)) console.error(line);
}

/** The last quarter of a run beside its second: the first one warms up. */
function flatness(
  name: string,
  samples: readonly Sample[],
  member: keyof Sample,
  { unit, divisor = 1 }: { unit: string; divisor?: number },
): Figure {
  const quarter = Math.floor(samples.length / 4);
  const mean = (part: readonly Sample[]) => sum(part.map((each) => each[member])) / part.length;
  const early = mean(samples.slice(quarter, 2 * quarter));
  const late = mean(samples.slice(-quarter));
  return {
    scenario: `soak: ${name}, last quarter`,
    ours: { value: late / divisor, unit },
    ratio: { value: late / early, to: "the second quarter" },
    goal: { of: "ratio", atMost: 1.1 },
  };
}

/** Purchases a second, 128 at once. */
async function measureCapacity(devnet: Devnet, sellers: readonly SellerProcess[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, timeout: 2_000 });
  const headers = (await signPayments(devnet, capacityPayments)).map(encodePaymentPayload);
  let turn = 0;
  const buy = async (header: string) => {
    const { port } = sellers[turn++ % sellers.length] ?? {};
    if (port === undefined) throw new Error("There is no seller.");
    await getPaid({ port, agent, header });
  };
  await timeConcurrently(headers.splice(0, capacityPayments / 3), 128, buy);
  const count = headers.length;
  const seconds = await timeConcurrently(headers, 128, buy);
  agent.destroy();
  return count / seconds;
}

interface Purchase {
  nonce: string;
  isHad: boolean;
  attempts: number;
}

/** Buyers that come at a steady rate, each with one payment. */
function startBuyers(options: {
  devnet: Devnet;
  sellers: readonly SellerProcess[];
  perSecond: number;
}) {
  const { devnet, sellers, perSecond } = options;
  const agent = new Agent({ keepAlive: true, timeout: 2_000 });
  const times: number[] = [];
  const purchases: Purchase[] = [];
  const buying = new Set<Promise<void>>();
  const ending = new AbortController();
  const startedAt = performance.now();
  let bought = 0;

  async function buy(index: number): Promise<void> {
    const payment = await signPayment(devnet, index);
    const header = encodePaymentPayload(payment);
    const { authorization } = payment.payload;
    if (typeof authorization !== "object" || authorization === null) throw new Error("No payment");
    const nonce = String(Reflect.get(authorization, "nonce"));
    const purchase: Purchase = { nonce, isHad: false, attempts: 0 };
    purchases.push(purchase);
    const beganAt = performance.now();
    while (!purchase.isHad && performance.now() < beganAt + patienceMs) {
      const { port } = sellers[(index + purchase.attempts) % sellers.length] ?? {};
      purchase.attempts += 1;
      try {
        if (port === undefined) throw new Error("There is no seller.");
        await getPaid({ port, agent, header });
        purchase.isHad = true;
        bought += 1;
      } catch (error) {
        console.error(error);
        await sleep(1_000);
      }
    }
    times.push(performance.now() - beganAt);
  }

  async function comeInTurn(): Promise<void> {
    for (let index = 0; !ending.signal.aborted; index += 1) {
      const dueAt = startedAt + (index * 1_000) / perSecond;
      await sleep(Math.max(0, dueAt - performance.now()));
      const job = buy(index).finally(() => buying.delete(job));
      buying.add(job);
    }
  }

  const coming = comeInTurn();
  return {
    times,
    bought: () => bought,
    async stop(): Promise<Purchase[]> {
      ending.abort();
      await coming;
      await Promise.all(buying);
      agent.destroy();
      return purchases;
    },
  };
}

/** The chain's word: the nonces of all payments that it has executed. */
async function usedNonces({ client, token }: Devnet): Promise<Set<string>> {
  const used = new Set<string>();
  const head = await client.getBlockNumber({ cacheTime: 0 });
  for (let from = 0n; from <= head; from += logRange) {
    const toBlock = from + logRange - 1n < head ? from + logRange - 1n : head;
    const logs = await client.getContractEvents({
      address: token,
      abi: eip3009Abi,
      eventName: "AuthorizationUsed",
      fromBlock: from,
      toBlock,
      strict: true,
    });
    for (const { args } of logs) used.add(args.nonce);
  }
  return used;
}
