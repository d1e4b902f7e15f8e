import { type Devnet, placeChannels } from "@coinslot/devnet";
import { decodePaymentRequired, headerName, type PaymentRequirements } from "@coinslot/protocol";
import { type Calamities, strike } from "../calamity.ts";
import type { FaultProxy } from "../fault-proxy.ts";
import { createFileLogger } from "../file-logger.ts";
import { type MovingChain, startMovingChain } from "../live-chain.ts";
import { openScene, type Scene } from "../scene.ts";
import { createRandom } from "../seeded-random.ts";
import { type SellerFleet, startSellerFleet } from "../seller-fleet.ts";
import { channelPoints } from "../worker-messages.ts";
import type { SellerProgram } from "../worker-process.ts";
import type { Market } from "./buy-voucher.ts";
import { type ChannelBank, openChannelBank } from "./channel-account.ts";
import type { ChannelBook } from "./channel-book.ts";
import { buyByChannel, type ChannelBuyer } from "./channel-buyer.ts";
import { createChannelLoad } from "./channel-load.ts";
import { type EscrowRecord, readEscrow } from "./channel-record.ts";
import { findChannelViolations } from "./judge-channels.ts";
import { awaitClaimed, type LedgerOfChannels } from "./ledger-of-channels.ts";
import { planChannels, price } from "./voucher-plan.ts";

export interface ChannelRunOptions {
  /** Makes every decision of the run, except the scheduling of processes. */
  seed: string;
  channels: number;
  vouchers: number;
  kills: number;
  /** PostgreSQL; a SQLite file when absent. */
  postgresUrl?: string | undefined;
  /** Processes at a time; one is all that SQLite allows. */
  processes: number;
  /** Share of the answers of the chain that are faulty. Default 1 in 20. */
  faultShare?: number;
  /** Purchases at a time. Default 40. */
  concurrency?: number;
  /** Share of the channels whose payers withdraw. Default 1 in 5. */
  hostileShare?: number;
  /** Time of the chain from block to block. Its delays end sooner then. Default 4. */
  secondsPerBlock?: number;
  /** A charge is claimed after this, at the latest. Default 20. */
  claimAfterSeconds?: number;
}

/** Events of a run, and its violations. */
export interface ChannelReport extends Calamities {
  seed: string;
  engine: "sqlite" | "postgres";
  processes: number;
  seconds: number;
  buyers: readonly ChannelBuyer[];
  ledger: LedgerOfChannels;
  escrow: EscrowRecord;
  handlerRuns: number;
  rpc: ReturnType<FaultProxy["counts"]>;
  deaths: number;
  reorganisations: number;
  /** From the end of the faults until all was claimed. */
  calmSeconds: number;
  violations: readonly string[];
  /** Where logs are, if something went wrong; otherwise they are gone. */
  directory: string | undefined;
}

export const withdrawDelay = 900;
/** More than a reorganisation is deep: a deposit that counts stays. */
const serveAfter = 4;
const finalAfter = 8;
/** Time after the faults in which buyers get their answers, and sellers claim. */
const calmLimitMs = 150_000;
const workerSource = new URL("./channel-worker.ts", import.meta.url);

/**
 * Sells by channels while processes die, freeze and restart, the chain reorganises and payers
 * withdraw. One in twenty of the chain's answers is wrong. Then all is claimed and settled, and the
 * sums of buyers, ledger and chain are compared.
 */
export async function runChannelFaults(options: ChannelRunOptions): Promise<ChannelReport> {
  const startedAt = performance.now();
  const { seed, channels, vouchers, kills, postgresUrl, processes } = options;
  const { faultShare = 0.05, concurrency = 40, hostileShare = 0.2, secondsPerBlock = 4 } = options;
  const { claimAfterSeconds = 20 } = options;
  const random = createRandom(seed);
  const scene = await openScene({ random, postgresUrl, faultShare, source: workerSource });
  const { devnet, proxy } = scene;
  const hopeless = new AbortController();
  let fleet: SellerFleet | undefined;
  let chain: MovingChain | undefined;
  let isClean = false;
  try {
    const plans = planChannels({
      ...{ channels, vouchers, hostileShare },
      random: random.fork("vouchers"),
    });
    const perChannel = Math.ceil(vouchers / channels) + 2;
    // One that withdraws all deposits as much again.
    const deposit = price * BigInt(perChannel);
    const funds = deposit * 4n;
    const bank = await fundChannels(devnet, { seed, channels, deposit, funds, secondsPerBlock });
    const log = createFileLogger(scene.program.options.logFile);
    const sellers = await startSellerFleet({
      count: processes,
      random: random.fork("fleet"),
      program: programOf(scene, claimAfterSeconds),
      onMessage: () => undefined,
    });
    fleet = sellers;
    const sellerUrl = async () => (await sellers.anyone()).url;
    const offers = await readOffers(await sellerUrl());
    await devnet.setAutomine(false);
    const moving = startMovingChain({ devnet, random: random.fork("chain") });
    chain = moving;
    const market = { ...{ bank, offers, sellerUrl, log }, signal: hopeless.signal };
    const books = bank.accounts.map(
      (account): ChannelBook => ({
        ...{ ...account, base: 0n, possible: new Set([0n]), signed: 0n },
        ...{ mayBeRefused: false, faults: [] },
      }),
    );
    const load = createChannelLoad(concurrency);
    const buying = Promise.all(
      plans.map((plan, index) => {
        const book = books[index];
        if (book === undefined) throw new Error("A channel has no account.");
        return buyByChannel({ ...market, devnet, deposit }, { plan, book, gate: load.gate });
      }),
    ).finally(load.end);
    const total = plans.reduce((sum, each) => sum + each.vouchers.length, 0);
    proxy.setFaulty(true);
    const calamities = await strike({
      kills,
      fleet: sellers,
      chain: moving,
      random: random.fork("calamities"),
      patienceMs: 1_500,
      points: [...channelPoints, ...channelPoints, "handling", ...claimPoints],
      async feed(share) {
        load.allow(Math.ceil(((share + 1) * total) / kills));
        await load.begun(Math.floor((share * total) / kills));
      },
    });
    load.allow(total);
    await load.begun(total);

    proxy.setFaulty(false);
    moving.calm();
    load.calm();
    const faultsEndedAt = performance.now();
    const losingHope = setTimeout(() => hopeless.abort(), calmLimitMs);
    const buyers = await buying;
    clearTimeout(losingHope);
    const ledger = await awaitClaimed(scene.program.options.ledger, calmLimitMs);
    const calmSeconds = (performance.now() - faultsEndedAt) / 1_000;
    await moving.stop();
    await bank.settle();
    await devnet.mine(1);
    const escrow = await readEscrow(devnet);
    const runs = await scene.handlerRuns();
    const violations = findChannelViolations({ buyers, ledger, escrow, runs });
    isClean = violations.length === 0;
    return {
      ...calamities,
      seed,
      engine: postgresUrl === undefined ? "sqlite" : "postgres",
      processes,
      seconds: (performance.now() - startedAt) / 1_000,
      ...{ buyers, ledger, escrow, violations, calmSeconds },
      handlerRuns: [...runs.values()].reduce((sum, { length }) => sum + length, 0),
      rpc: proxy.counts(),
      deaths: sellers.deaths(),
      reorganisations: moving.reorganisations(),
      directory: isClean ? undefined : scene.directory,
    };
  } finally {
    await fleet?.stop();
    await chain?.stop();
    await scene.close({ keepsFiles: !isClean });
  }
}

/** The options of a worker by channels, which claims often. */
export function programOf({ devnet, program }: Scene, claimAfterSeconds: number): SellerProgram {
  const channels = {
    authorizerKey: devnet.accounts.deployer.privateKey,
    ...{ withdrawDelay, serveAfter, finalAfter, claimAfterSeconds },
    mostAtRisk: `${20n * price}`,
    claimCost: "10",
  };
  return { ...program, options: { ...program.options, channels } };
}

/** Places the contracts, and deposits on all channels. No reorganisation reaches these blocks. */
export async function fundChannels(
  devnet: Devnet,
  options: {
    seed: string;
    channels: number;
    deposit: bigint;
    /** Of each payer. */
    funds: bigint;
    secondsPerBlock: number;
  },
): Promise<ChannelBank> {
  const { seed, channels, deposit, funds, secondsPerBlock } = options;
  await placeChannels(devnet);
  const bank = await openChannelBank({ devnet, seed, channels, withdrawDelay, funds });
  await bank.depositAll(deposit);
  await devnet.mine(finalAfter + 4);
  await devnet.client.setBlockTimestampInterval({ interval: secondsPerBlock });
  return bank;
}

/** Fault points on the way of a call of the escrow. */
export const claimPoints = ["signed", "stored", "broadcast", "included", "recorded"] as const;

async function readOffers(url: string): Promise<Market["offers"]> {
  const [authorization, upfront] = await Promise.all(
    ["/report/0", "/upfront/0"].map((path) => readOffer(`${url}${path}`)),
  );
  if (authorization === undefined || upfront === undefined) throw new Error("Nothing is offered.");
  return { authorization, upfront };
}

async function readOffer(url: string): Promise<PaymentRequirements | undefined> {
  const response = await fetch(url);
  const header = response.headers.get(headerName.paymentRequired) ?? "";
  return decodePaymentRequired(header).accepts[0]?.requirements;
}
