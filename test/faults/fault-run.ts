import { operatorAt, type RefundRecord } from "@coinslot/facilitator";
import { toLowerHex } from "@coinslot/protocol";
import { privateKeyToAccount } from "viem/accounts";
import { checkBooks } from "./books.ts";
import type { Bought } from "./buyer.ts";
import { type Calamities, strike } from "./calamity.ts";
import { readChain } from "./chain-record.ts";
import type { FaultProxy } from "./fault-proxy.ts";
import { createFileLogger } from "./file-logger.ts";
import { findRefundViolations } from "./judge-refunds.ts";
import { findWebhookViolations } from "./judge-webhooks.ts";
import { awaitFinality, awaitRest, calmLimitMs } from "./ledger-at-rest.ts";
import { type LiveChain, startLiveChain } from "./live-chain.ts";
import { startLoad } from "./load.ts";
import { findViolations } from "./oracle.ts";
import { floatKeyOf, planPurchases, price } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom, type Random } from "./seeded-random.ts";
import { type SellerFleet, startSellerFleet } from "./seller-fleet.ts";
import { type AskedRefund, awaitRefunds, startSupport } from "./support.ts";
import { awaitDeliveries, openWebhookLog } from "./webhook-log.ts";
import { killPoints, type ListedPayment, refundPoints } from "./worker-messages.ts";
import type { WorkerProcess } from "./worker-process.ts";

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
  refunds: readonly RefundRecord[];
  /** Events that the receiver of webhooks has taken in, and the requests that it took for them. */
  webhooks: { events: number; requests: number };
  /** Counts that `coinslot books check` has compared. */
  books: string;
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
  const parts = await giveBackAndTell(scene, random);
  const { program, float, receiver, operator, log } = parts;
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
    await devnet.mint({ to: float, amount: price * BigInt(payments) });
    await fundPayers(devnet, purchases);
    const sellers = await startSellerFleet({
      count: processes,
      random: random.fork("fleet"),
      program,
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
    const support = startSupport({
      operator,
      random: random.fork("support"),
      signal: hopeless.signal,
      log,
    });
    const load = startLoad({
      devnet,
      purchases,
      concurrency,
      chain,
      sellerUrl: async () => (await sellers.anyone()).url,
      signal: hopeless.signal,
      onBought: support.consider,
      log,
    });
    proxy.setFaulty(true);
    receiver.setFaulty(true);
    const calamities = await strike({
      kills,
      fleet: sellers,
      chain,
      random: random.fork("calamities"),
      points: [...killPoints, ...refundPoints],
      async feed(share) {
        load.allow(Math.ceil(((share + 1) * payments) / kills));
        await load.begun(Math.floor((share * payments) / kills));
      },
    });
    load.allow(payments);
    await load.begun(payments);

    proxy.setFaulty(false);
    receiver.setFaulty(false);
    chain.calm();
    const faultsEndedAt = performance.now();
    const losingHope = setTimeout(() => hopeless.abort(), calmLimitMs);
    const bought = await load.done;
    const asked = await support.done();
    clearTimeout(losingHope);
    const witness = await sellers.anyone();
    await awaitRest(witness);
    const calmSeconds = (performance.now() - faultsEndedAt) / 1000;
    const { violations, ...outcome } = await compare({
      scene,
      parts,
      witness,
      chain,
      bought,
      asked,
      refusedSettlements,
    });
    isClean = violations.length === 0;
    return {
      ...calamities,
      seed,
      engine: postgresUrl === undefined ? "sqlite" : "postgres",
      processes,
      seconds: (performance.now() - startedAt) / 1000,
      bought,
      ...outcome,
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
    await receiver.close();
    await scene.close({ keepsFiles: !isClean });
  }
}

/** Sellers with a float for refunds, and a receiver of webhooks. */
async function giveBackAndTell(scene: Scene, random: Random) {
  const floatKey = floatKeyOf(random);
  const receiver = await openWebhookLog(random.fork("webhooks"));
  const { url, secret } = receiver;
  const options = { ...scene.program.options, floatKey, webhook: { url, secret } };
  return {
    program: { ...scene.program, options },
    float: privateKeyToAccount(floatKey).address,
    receiver,
    operator: operatorAt(options.ledger),
    log: createFileLogger(options.logFile),
  };
}

/** Waits until all is final and told, and compares the ledger with chain, receiver and books. */
async function compare(run: {
  scene: Scene;
  parts: Awaited<ReturnType<typeof giveBackAndTell>>;
  witness: WorkerProcess;
  chain: LiveChain;
  bought: readonly Bought[];
  asked: readonly AskedRefund[];
  refusedSettlements: ReadonlyMap<string, number>;
}) {
  const { scene, parts, witness, chain, bought, asked, refusedSettlements } = run;
  const { program, float, receiver, operator } = parts;
  const { devnet, proxy } = scene;
  const { replaced } = chain;
  const refunds = await awaitRefunds(operator);
  const ledger = await awaitFinality(witness);
  const left = await awaitDeliveries(program.options.ledger);
  await chain.stop();
  const runs = await scene.handlerRuns();
  const record = await readChain(devnet);
  const books = await checkBooks({ ...program.options, devnet, chain: record, bought });
  const taken = receiver.taken();
  const broadcasts = proxy.broadcasts();
  return {
    ledger,
    refunds,
    handlerRuns: [...runs.values()].reduce((sum, { length }) => sum + length, 0),
    webhooks: { events: new Set(taken.map(({ id }) => id)).size, requests: taken.length },
    books: books.words,
    violations: [
      ...findViolations({
        chain: record,
        ledger,
        bought,
        runs,
        refusedSettlements,
        replaced,
        broadcasts,
      }),
      ...findRefundViolations({ asked, refunds, float, chain: record }),
      ...findWebhookViolations({ taken, ledger, refunds, left, foreign: receiver.foreign() }),
      ...books.violations,
    ],
  };
}
