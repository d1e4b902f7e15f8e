import { toLowerHex } from "@coinslot/protocol";
import type { Bought } from "./buyer.ts";
import { type Calamities, strike } from "./calamity.ts";
import { readChain } from "./chain-record.ts";
import type { FaultProxy } from "./fault-proxy.ts";
import { createFileLogger } from "./file-logger.ts";
import { awaitFinality, awaitRest, calmLimitMs } from "./ledger-at-rest.ts";
import { type LiveChain, startLiveChain } from "./live-chain.ts";
import { startLoad } from "./load.ts";
import { findViolations } from "./oracle.ts";
import { planPurchases } from "./purchase.ts";
import { fundPayers, openScene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { type SellerFleet, startSellerFleet } from "./seller-fleet.ts";
import type { ListedPayment } from "./worker-messages.ts";

export interface FaultRunOptions {
  /** Makes every decision of the run, except the scheduling of processes. */
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

/** Events of a run, and its violations. */
export interface FaultReport extends Calamities {
  seed: string;
  engine: "sqlite" | "postgres";
  processes: number;
  seconds: number;
  bought: readonly Bought[];
  /** Number of a handler's runs. */
  handlerRuns: number;
  ledger: readonly ListedPayment[];
  rpc: ReturnType<FaultProxy["counts"]>;
  deaths: number;
  reorganisations: number;
  /** Payments undone by a reorganisation, as reported by the facilitator. */
  takenBack: number;
  /** From the end of the faults until nothing was under way. */
  calmSeconds: number;
  violations: readonly string[];
  /** Where logs are, if something went wrong; otherwise they are gone. */
  directory: string | undefined;
}

/**
 * Sells to buyers while processes die, freeze and restart, and the chain reorganises. One in twenty
 * of the chain's answers is wrong. Then it lets everything come to rest, and compares the result
 * with the chain.
 */
export async function runFaults(options: FaultRunOptions): Promise<FaultReport> {
  const startedAt = performance.now();
  const { seed, payments, kills, postgresUrl, processes } = options;
  const { faultShare = 0.05, concurrency = 40 } = options;
  const random = createRandom(seed);
  const scene = await openScene({ random, postgresUrl, faultShare });
  const { devnet, proxy } = scene;
  const takenBack = new Set<string>();
  const refusedSettlements = new Map<string, number>();
  const hopeless = new AbortController();
  let fleet: SellerFleet | undefined;
  let chain: LiveChain | undefined;
  let isClean = false;
  try {
    const purchases = planPurchases({
      count: payments,
      random: random.fork("purchases"),
      now: Date.now(),
    });
    await fundPayers(devnet, purchases);
    const sellers = await startSellerFleet({
      count: processes,
      random: random.fork("fleet"),
      program: scene.program,
      onMessage(message) {
        if (message.type === "reorganised") takenBack.add(toLowerHex(message.nonce));
        if (message.type === "settlement-refused") {
          const nonce = toLowerHex(message.nonce);
          refusedSettlements.set(nonce, (refusedSettlements.get(nonce) ?? 0) + 1);
        }
      },
    });
    fleet = sellers;
    await devnet.setAutomine(false);
    chain = startLiveChain({ devnet, random: random.fork("chain") });
    const load = startLoad({
      devnet,
      purchases,
      concurrency,
      chain,
      sellerUrl: async () => (await sellers.anyone()).url,
      signal: hopeless.signal,
      log: createFileLogger(scene.program.options.logFile),
    });
    proxy.setFaulty(true);
    const calamities = await strike({
      kills,
      fleet: sellers,
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
    chain.calm();
    const faultsEndedAt = performance.now();
    const losingHope = setTimeout(() => hopeless.abort(), calmLimitMs);
    const bought = await load.done;
    clearTimeout(losingHope);
    const witness = await sellers.anyone();
    await awaitRest(witness);
    const calmSeconds = (performance.now() - faultsEndedAt) / 1000;
    const ledger = await awaitFinality(witness);
    await chain.stop();
    const runs = await scene.handlerRuns();
    const violations = findViolations({
      chain: await readChain(devnet),
      ledger,
      bought,
      runs,
      refusedSettlements,
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
      handlerRuns: [...runs.values()].reduce((sum, { length }) => sum + length, 0),
      ledger,
      rpc: proxy.counts(),
      deaths: sellers.deaths(),
      reorganisations: chain.reorganisations(),
      takenBack: takenBack.size,
      calmSeconds,
      violations,
      directory: isClean ? undefined : scene.directory,
    };
  } finally {
    await fleet?.stop();
    await chain?.stop();
    await scene.close({ keepsFiles: !isClean });
  }
}
