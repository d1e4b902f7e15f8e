import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { type Address, toLowerHex } from "@coinslot/protocol";
import type { Bought } from "./buyer.ts";
import { type Calamities, strike } from "./calamity.ts";
import { readChain } from "./chain-record.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { startLiveChain } from "./live-chain.ts";
import { startLoad } from "./load.ts";
import { findViolations, isUnderWay } from "./oracle.ts";
import { type Purchase, planPurchases, price, validitySeconds } from "./purchase.ts";
import { createRandom } from "./seeded-random.ts";
import { type SellerFleet, startSellerFleet } from "./seller-fleet.ts";
import type { ListedPayment } from "./worker-messages.ts";

export interface FaultRunOptions {
  /** Makes every decision of the run. What it cannot decide is when processes get their turn. */
  seed: string;
  payments: number;
  kills: number;
  /** PostgreSQL; a SQLite file when absent. */
  postgresUrl?: string | undefined;
  /** Processes at a time; one is all that SQLite allows. */
  processes: number;
  /** Share of the answers of the chain that are faulty. Default 1 in 20. */
  faultShare?: number;
  /** Buyers at a time. Default 40. */
  concurrency?: number;
}

/** What happened in a run, and what should not have. */
export interface FaultReport extends Calamities {
  seed: string;
  engine: "sqlite" | "postgres";
  processes: number;
  seconds: number;
  bought: readonly Bought[];
  /** How often a handler ran. */
  handlerRuns: number;
  ledger: readonly ListedPayment[];
  rpc: ReturnType<FaultProxy["counts"]>;
  deaths: number;
  reorganisations: number;
  /** Payments that a reorganisation took back, as the facilitator told it. */
  takenBack: number;
  /** From the end of the faults until nothing was under way. */
  calmSeconds: number;
  violations: readonly string[];
  /** Where logs are, if something went wrong; otherwise they are gone. */
  directory: string | undefined;
}

/** How long after the end of the faults payments may be under way. */
const calmLimitMs = 45_000;
/** More blocks than the network needs to call a payment final. */
const finalBlocks = 12;

/**
 * Sells to buyers while processes die, freeze and restart, the chain reorganises, and one in twenty
 * of its answers is wrong; then lets everything come to rest, and asks the chain what is true.
 */
export async function runFaults(options: FaultRunOptions): Promise<FaultReport> {
  const startedAt = performance.now();
  const { seed, payments, kills, postgresUrl, processes } = options;
  const { faultShare = 0.05, concurrency = 40 } = options;
  const random = createRandom(seed);
  const directory = await mkdtemp(join(tmpdir(), "coinslot-faults-"));
  const runsFile = join(directory, "handler-runs.txt");
  await appendFile(runsFile, "");
  const devnet = await startDevnet({ accountCount: 5 });
  const takenBack = new Set<string>();
  const hopeless = new AbortController();
  let proxy: FaultProxy | undefined;
  let fleet: SellerFleet | undefined;
  let isClean = false;
  try {
    const purchases = await planPurchases({
      devnet,
      count: payments,
      random: random.fork("purchases"),
      now: Date.now(),
    });
    await fund(devnet, purchases);
    proxy = await startFaultProxy({
      upstream: devnet.rpcUrl,
      random: random.fork("rpc"),
      faultShare,
    });
    fleet = await startSellerFleet({
      count: processes,
      random: random.fork("fleet"),
      worker: {
        network: devnet.network,
        rpcUrl: proxy.url,
        ledger: postgresUrl ?? `sqlite:${join(directory, "ledger.db")}`,
        relayerKey: devnet.accounts.relayer.privateKey,
        token: devnet.token,
        payTo: devnet.accounts.seller.address,
        price: price.toString(),
        validitySeconds,
        runsFile,
        logFile: join(directory, "facilitator.log"),
      },
      onMessage(message) {
        if (message.type === "reorganised") takenBack.add(toLowerHex(message.nonce));
      },
    });
    await devnet.setAutomine(false);
    const chain = startLiveChain({ devnet, random: random.fork("chain") });
    const load = startLoad({ purchases, concurrency, fleet, chain, signal: hopeless.signal });
    proxy.setFaulty(true);
    const calamities = await strike({
      kills,
      fleet,
      chain,
      random: random.fork("calamities"),
      async feed(share) {
        load.allow(Math.ceil(((share + 1) * payments) / kills));
        await load.begun(Math.floor((share * payments) / kills));
      },
    });
    load.allow(payments);
    await load.begun(payments);

    proxy.setFaulty(false);
    const faultsEndedAt = performance.now();
    const losingHope = setTimeout(() => hopeless.abort(), calmLimitMs);
    const bought = await load.done;
    clearTimeout(losingHope);
    await restOf(fleet, (ledger) => !ledger.some(({ state }) => isUnderWay(state)));
    const calmSeconds = (performance.now() - faultsEndedAt) / 1000;
    await chain.stop();
    await devnet.mine(finalBlocks);
    const ledger = await restOf(
      fleet,
      (payments) => !payments.some(({ state, isFinal }) => state === "confirmed" && !isFinal),
    );
    const runs = await countLines(runsFile);
    const violations = findViolations({
      chain: await readChain(devnet),
      ledger,
      bought,
      runs,
      replaced: chain.replaced,
      broadcasts: proxy.broadcasts(),
    });
    isClean = violations.length === 0;
    return {
      ...calamities,
      seed,
      engine: postgresUrl === undefined ? "sqlite" : "postgres",
      processes,
      seconds: (performance.now() - startedAt) / 1000,
      bought,
      handlerRuns: [...runs.values()].reduce((sum, count) => sum + count, 0),
      ledger,
      rpc: proxy.counts(),
      deaths: fleet.deaths(),
      reorganisations: chain.reorganisations(),
      takenBack: takenBack.size,
      calmSeconds,
      violations,
      directory: isClean ? undefined : directory,
    };
  } finally {
    await fleet?.stop();
    await proxy?.close();
    await devnet.stop();
    if (isClean) await rm(directory, { recursive: true, force: true });
  }
}

/**
 * Gives honest payers twice what their purchases cost: what a block holds and the ledger has not yet
 * written down counts twice against a balance for a moment. All others get exactly what they need.
 * No reorganisation reaches the blocks of these gifts.
 */
async function fund(devnet: Devnet, purchases: readonly Purchase[]): Promise<void> {
  const needs = new Map<Address, bigint>();
  for (const { payer, interference } of purchases) {
    const cost = interference === "none" ? 2n * price : price;
    needs.set(payer.address, (needs.get(payer.address) ?? 0n) + cost);
  }
  await Promise.all([...needs].map(([to, amount]) => devnet.mint({ to, amount })));
  await devnet.mine(finalBlocks);
}

/** The ledger once it has come to rest, or as it stands when the time for that is over. */
async function restOf(
  fleet: SellerFleet,
  isAtRest: (ledger: readonly ListedPayment[]) => boolean,
): Promise<ListedPayment[]> {
  const deadline = performance.now() + calmLimitMs;
  for (;;) {
    await fleet.waitFor(1);
    const [worker] = fleet.workers();
    const ledger = (await worker?.listPayments()) ?? [];
    if (isAtRest(ledger) || performance.now() > deadline) return ledger;
    await sleep(200);
  }
}

async function countLines(file: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const line of (await readFile(file, "utf8")).split("\n")) {
    if (line !== "") counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return counts;
}
