import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Database,
  type Devnet,
  devSeedPhrase,
  type Postgres,
  startDevnet,
  startPostgres,
} from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload } from "@coinslot/protocol";
import { compareStatements, countedBetween } from "../../support/compare-statements.ts";
import { type CountingProxy, startCountingProxy } from "../../support/counting-proxy.ts";
import type { Figure } from "../../support/figure.ts";
import { getPaid } from "../../support/get-paid.ts";
import { percentile, timeConcurrently } from "../../support/measure.ts";
import { postgresSeconds } from "../../support/postgres-time.ts";
import { type SellerProcess, startSellerProcess } from "../../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../../support/signed-payments.ts";
import { untilAtRest } from "../../support/until-at-rest.ts";
import { watchLocks } from "../../support/watch-locks.ts";

const fleetSizes = [1, 2, 4];
const payerCount = 40;
const buyersPerSeller = Number(process.env.BENCH_FLEET_BUYERS ?? 128);
/** Of each seller: a shorter turn of a larger fleet would measure code that is not yet compiled. */
const paymentsPerSeller = Number(process.env.BENCH_FLEET_PAYMENTS ?? 4_096);
/** Number of statements that are printed for each fleet, the most frequent ones. */
const printed = Number(process.env.BENCH_FLEET_STATEMENTS ?? 0);
/** Payments of each seller beforehand: code that has run this often is compiled. */
const warmUpPerSeller = Number(process.env.BENCH_FLEET_WARM_UP ?? 2_048);
/** The devnet's relayer, and the accounts behind it. */
const firstRelayer = 1;

/** Costs of a payment in one fleet, all its sellers together. */
interface Cost {
  sellers: number;
  buyers: number;
  /** Milliseconds of processor time: of the sellers, and of PostgreSQL. */
  processorMs: number;
  postgresMs: number | undefined;
  statements: number;
  /** Database transactions that wait for a lock of another one, at any moment. */
  lockWaits: number;
  perSecond: number;
  /** Milliseconds until the answer. */
  p99: number;
}

/**
 * Sellers that share one PostgreSQL, with as many relayers as sellers. The load grows with the
 * fleet: as many buyers at once for each seller. A second row of figures keeps the load, so that
 * each seller has a part of it. In a third each seller has a database and a relayer of its own:
 * what as many processes cost that share only the machine and the chain.
 */
export async function fleet(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  try {
    const source = new URL("../../support/seller-process.ts", import.meta.url);
    const program = await bundleProgram(source, folder, { minifies: true });
    const figures: Figure[] = [];
    for (const load of ["grows", "stays", "apart"] as const) {
      const costs: Cost[] = [];
      for (const sellers of fleetSizes) {
        const buyers = buyersPerSeller * (load === "stays" ? 1 : sellers);
        const isApart = load === "apart";
        costs.push(await onNewDevnet({ postgres, program, sellers, buyers, isApart }));
      }
      figures.push(...figuresOf(costs, load));
    }
    return figures;
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Only a load that grows with the fleet has goals: fewer buyers for each seller share less. */
function figuresOf(costs: readonly Cost[], load: "grows" | "stays" | "apart"): Figure[] {
  const [alone] = costs;
  if (alone === undefined) return [];
  return costs.flatMap((cost): Figure[] => {
    const kind = load === "apart" ? "sellers apart" : "fleet";
    const name = `${kind} of ${cost.sellers}, ${cost.buyers} at once`;
    const ratioTo = (value: number) => ({ value, to: "one seller" });
    const goal =
      load === "grows" && cost !== alone ? { of: "ratio" as const, atMost: 1.25 } : undefined;
    return [
      {
        scenario: `${name}: processor time of the sellers for a payment`,
        ours: { value: cost.processorMs, unit: "ms" },
        ratio: ratioTo(cost.processorMs / alone.processorMs),
        ...(goal && { goal }),
      },
      ...(cost.postgresMs === undefined || alone.postgresMs === undefined
        ? []
        : [
            {
              scenario: `${name}: processor time of PostgreSQL for a payment`,
              ours: { value: cost.postgresMs, unit: "ms" },
              ratio: ratioTo(cost.postgresMs / alone.postgresMs),
            },
          ]),
      {
        scenario: `${name}: statements for a payment`,
        ours: { value: cost.statements, unit: "" },
        ratio: ratioTo(cost.statements / alone.statements),
        ...(goal && { goal }),
      },
      {
        scenario: `${name}: transactions that wait for a lock, on average`,
        ours: { value: cost.lockWaits, unit: "transactions" },
      },
      {
        scenario: `${name}: payments, and p99`,
        ours: { value: cost.perSecond, unit: "/s", note: `p99 ${cost.p99.toFixed(0)} ms` },
        ratio: ratioTo(cost.perSecond / alone.perSecond),
      },
    ];
  });
}

interface Fleet {
  devnet: Devnet;
  postgres: Postgres;
  program: string;
  sellers: number;
  buyers: number;
  /** Whether each seller has a database of its own. */
  isApart: boolean;
}

/** A devnet that has run for a while mines more slowly: the last fleet would look worst. */
async function onNewDevnet(options: Omit<Fleet, "devnet">): Promise<Cost> {
  const devnet = await startDevnet({ accountCount: payerCount + 4 });
  try {
    await fundPayers(devnet);
    return await measureFleet({ devnet, ...options });
  } finally {
    await devnet.stop();
  }
}

async function measureFleet(options: Fleet): Promise<Cost> {
  const { devnet, postgres, sellers: count, buyers, isApart } = options;
  const payments = paymentsPerSeller * count;
  const databases: Database[] = [];
  const proxies: CountingProxy[] = [];
  const agents = Array.from(
    { length: count },
    () => new Agent({ keepAlive: true, timeout: 2_000 }),
  );
  const sellers: SellerProcess[] = [];
  try {
    for (let index = 0; index < count; index += 1) {
      if (isApart || index === 0) {
        const database = await postgres.createDatabase();
        databases.push(database);
        proxies.push(await startCountingProxy(database.url));
      }
      sellers.push(await startSeller(options, index, proxies.at(-1)?.url ?? ""));
    }
    const [{ url } = { url: "" }] = databases;
    const warmUp = warmUpPerSeller * count;
    const signed = await signPayments(devnet, warmUp + payments);
    let turn = 0;
    const times: number[] = [];
    const buy = async (header: string) => {
      const index = turn++ % count;
      const startedAt = performance.now();
      const { port } = sellers[index] ?? {};
      const agent = agents[index];
      if (port === undefined || agent === undefined) throw new Error("There is no such seller.");
      await getPaid({ port, agent, header });
      times.push(performance.now() - startedAt);
    };
    const headers = signed.map(encodePaymentPayload);
    await timeConcurrently(headers.splice(0, warmUp), buyers, buy);
    await untilAtRest(devnet);
    times.length = 0;
    const before = await usedBy({ sellers, proxies, url });
    const textsBefore = textsOf(proxies);
    const locks = watchLocks(url);
    const seconds = await timeConcurrently(headers, buyers, buy);
    const lockWaits = await locks.end();
    const after = await usedBy({ sellers, proxies, url });
    if (printed > 0) {
      const bought = countedBetween(
        { texts: textsBefore, payments: 0 },
        { texts: textsOf(proxies), payments },
      );
      console.error(`fleet of ${count}, ${buyers} at once: statements of 1,000 payments`);
      for (const line of compareStatements([bought], printed)) console.error(line);
    }
    const perPayment = (name: "processor" | "statements") =>
      (after[name] - before[name]) / payments;
    return {
      sellers: count,
      buyers,
      processorMs: 1000 * perPayment("processor"),
      postgresMs:
        after.postgres === undefined || before.postgres === undefined
          ? undefined
          : (1000 * (after.postgres - before.postgres)) / payments,
      statements: perPayment("statements"),
      lockWaits,
      perSecond: payments / seconds,
      p99: percentile(times, 0.99),
    };
  } finally {
    for (const agent of agents) agent.destroy();
    await Promise.all(sellers.map((seller) => seller.stop()));
    for (const proxy of proxies) await proxy.close();
    for (const database of databases) await database.drop();
  }
}

function startSeller(
  { devnet, program, sellers, isApart }: Fleet,
  index: number,
  ledger: string,
): Promise<SellerProcess> {
  const relayers = isApart
    ? { accountIndex: firstRelayer + index, addressCount: 1 }
    : { accountIndex: firstRelayer, addressCount: sellers };
  return startSellerProcess(program, {
    kind: "ours",
    rpcUrl: devnet.rpcUrl,
    chainId: devnet.chainId,
    relayer: { seedPhrase: devSeedPhrase, ...relayers },
    ledger,
    requirements: requirementsOf(devnet),
  });
}

/** Statements by text, of all sellers together. */
function textsOf(proxies: readonly CountingProxy[]): Map<string, number> {
  const all = new Map<string, number>();
  for (const [text, count] of proxies.flatMap((proxy) => [...proxy.byText()])) {
    all.set(text, (all.get(text) ?? 0) + count);
  }
  return all;
}

async function usedBy(options: {
  sellers: readonly SellerProcess[];
  proxies: readonly CountingProxy[];
  /** Of a database: the processor time of all its server's processes is read there. */
  url: string;
}) {
  const { sellers, proxies, url } = options;
  const usages = await Promise.all(sellers.map((seller) => seller.usage()));
  return {
    processor: usages.reduce((total, { processorSeconds }) => total + processorSeconds, 0),
    statements: proxies.reduce((total, proxy) => total + proxy.statements(), 0),
    postgres: await postgresSeconds(url),
  };
}
