import { createChannelFixture, type Devnet } from "@coinslot/devnet";
import { depositTypedData, type Hex, type PaymentRequirements } from "@coinslot/protocol";
import { numberToHex } from "viem";
import { strike } from "../calamity.ts";
import { type MovingChain, startMovingChain } from "../live-chain.ts";
import { tokenDomain } from "../purchase.ts";
import { openScene } from "../scene.ts";
import { createRandom, type Random } from "../seeded-random.ts";
import { type SellerFleet, startSellerFleet } from "../seller-fleet.ts";
import { depositPoints } from "../worker-messages.ts";
import { type CallOutcome, callFacilitator } from "./call-facilitator.ts";
import type { ChannelAccount } from "./channel-account.ts";
import { createChannelLoad } from "./channel-load.ts";
import { type EscrowRecord, readEscrow } from "./channel-record.ts";
import { claimPoints, fundChannels, programOf, withdrawDelay } from "./channel-run.ts";
import { findCallViolations } from "./judge-calls.ts";

export interface HostedRunOptions {
  /** Makes every decision of the run, except the scheduling of processes. */
  seed: string;
  channels: number;
  /** Rounds of calls of each channel. */
  rounds: number;
  kills: number;
  /** PostgreSQL; a SQLite file when absent. */
  postgresUrl?: string | undefined;
  processes: number;
}

/** A call that a seller has asked for. Amounts are in the token's smallest unit. */
export interface HostedCall {
  kind: "deposit" | "claim" | "refund" | "settle";
  /** Deposited, claimed in all, or refunded. */
  amount: bigint;
  outcome: CallOutcome;
  /** Asked for beside the one before it. */
  isRepeated: boolean;
}

/** Calls that a seller elsewhere has asked for on one channel, in its order. */
export interface HostedSeller {
  channelId: Hex;
  calls: HostedCall[];
}

export interface HostedReport {
  sellers: readonly HostedSeller[];
  escrow: EscrowRecord;
  deaths: number;
  reorganisations: number;
  seconds: number;
  violations: readonly string[];
}

const deposit = 10_000n;
/** Time after the faults in which sellers get their answers. */
const calmLimitMs = 150_000;
const source = new URL("./hosted-worker.ts", import.meta.url);

/**
 * Sellers elsewhere have deposits, claims, refunds and settles made by a hosted facilitator. Its
 * processes die, freeze and restart, and the chain reorganises. One in twenty of the chain's
 * answers is wrong. Then each answer is compared with the chain.
 */
export async function runHostedFaults(options: HostedRunOptions): Promise<HostedReport> {
  const startedAt = performance.now();
  const { seed, channels, rounds, kills, postgresUrl, processes } = options;
  const random = createRandom(seed);
  const scene = await openScene({ random, postgresUrl, faultShare: 0.05, source });
  const { devnet, proxy } = scene;
  const hopeless = new AbortController();
  let fleet: SellerFleet | undefined;
  let chain: MovingChain | undefined;
  let isClean = false;
  try {
    const funds = deposit * BigInt(rounds + 1);
    const bank = await fundChannels(devnet, { seed, channels, deposit, funds, secondsPerBlock: 1 });
    const facilitators = await startSellerFleet({
      count: processes,
      random: random.fork("fleet"),
      program: programOf(scene, 20),
      onMessage: () => undefined,
    });
    fleet = facilitators;
    await devnet.setAutomine(false);
    const moving = startMovingChain({ devnet, random: random.fork("chain") });
    chain = moving;
    const load = createChannelLoad(channels);
    const sellers = bank.accounts.map(({ channelId }): HostedSeller => ({ channelId, calls: [] }));
    const url = async () => (await facilitators.anyone()).url;
    const selling = Promise.all(
      bank.accounts.map((account, index) =>
        keepSelling(
          { devnet, url, signal: hopeless.signal, enter: load.gate.enter },
          {
            account,
            calls: sellers[index]?.calls ?? [],
            rounds,
            random: random.fork(`seller ${index}`),
          },
        ),
      ),
    ).finally(load.end);
    const total = channels * rounds;
    proxy.setFaulty(true);
    await strike({
      kills,
      fleet: facilitators,
      chain: moving,
      random: random.fork("calamities"),
      patienceMs: 1_500,
      points: [...claimPoints, ...depositPoints],
      async feed(share) {
        load.allow(Math.ceil(((share + 1) * total) / kills));
        await load.begun(Math.floor((share * total) / kills));
      },
    });
    load.allow(total);
    await load.begun(total);
    proxy.setFaulty(false);
    moving.calm();
    const losingHope = setTimeout(() => hopeless.abort(), calmLimitMs);
    await selling;
    clearTimeout(losingHope);
    await moving.stop();
    await bank.settle();
    await devnet.mine(1);
    const escrow = await readEscrow(devnet);
    const isExecuted = async (hash: Hex) => {
      const receipt = await devnet.client.getTransactionReceipt({ hash }).catch(() => undefined);
      return receipt?.status === "success";
    };
    const violations = await findCallViolations(isExecuted, { sellers, escrow, first: deposit });
    isClean = violations.length === 0;
    return {
      ...{ sellers, escrow, violations, deaths: facilitators.deaths() },
      reorganisations: moving.reorganisations(),
      seconds: (performance.now() - startedAt) / 1_000,
    };
  } finally {
    hopeless.abort();
    await fleet?.stop();
    await chain?.stop();
    await scene.close({ keepsFiles: !isClean });
  }
}

interface Facilitators {
  devnet: Devnet;
  /** Of any living process. */
  url: () => Promise<string>;
  signal: AbortSignal;
  enter: () => Promise<() => void>;
}

/** In each round a deposit and a claim; a refund or a settle in some. */
async function keepSelling(
  { devnet, url, signal, enter }: Facilitators,
  options: { account: ChannelAccount; calls: HostedCall[]; rounds: number; random: Random },
): Promise<void> {
  const { account, calls, rounds, random } = options;
  const { config, channelId, payer } = account;
  const fixture = createChannelFixture(devnet);
  const requirements = requirementsOf(devnet, account);
  let [claimed, refundNonce] = [0n, 0n];

  async function call(kind: HostedCall["kind"], amount: bigint, payload: object) {
    const ask = () => callFacilitator({ url, requirements, payload, signal });
    // The same call twice at once, at any processes.
    const outcomes = await Promise.all(random.chance(0.2) ? [ask(), ask()] : [ask()]);
    for (const [index, outcome] of outcomes.entries()) {
      calls.push({ kind, amount, outcome, isRepeated: index > 0 });
    }
  }
  async function voucherOf(ceiling: bigint) {
    const signature = await fixture.signVoucher(config, ceiling, payer);
    return { channelId, maxClaimableAmount: ceiling, signature };
  }
  const rowOf = async (total: bigint) => {
    const { signature } = await voucherOf(total);
    const voucher = { channel: config, maxClaimableAmount: total };
    return { voucher, signature, totalClaimed: total };
  };

  for (let round = 1; round <= rounds; round += 1) {
    const leave = await enter();
    try {
      const salt = numberToHex(round, { size: 32 });
      const times = { validAfter: 0n, validBefore: 4_000_000_000n, salt };
      const place = { network: devnet.network, token: devnet.token, domain: tokenDomain };
      const signed = { ...place, payer: config.payer, channelId, amount: deposit, ...times };
      const signature = await payer.signTypedData(depositTypedData(signed));
      const authorization = { erc3009Authorization: { ...times, signature } };
      await call("deposit", deposit, {
        type: "deposit",
        channelConfig: config,
        voucher: await voucherOf(claimed + 1n),
        deposit: { amount: deposit, authorization },
      });
      claimed += BigInt(random.between(1, 5_000));
      await call("claim", claimed, { type: "claim", claims: [await rowOf(claimed)] });
      if (random.chance(0.5)) {
        const amount = BigInt(random.between(1, 2_000));
        await call("refund", amount, {
          ...{ type: "refund", channelConfig: config, voucher: await voucherOf(claimed) },
          ...{ amount, refundNonce, claims: [] },
        });
        refundNonce += 1n;
      }
      if (random.chance(0.3)) {
        await call("settle", 0n, {
          type: "settle",
          receiver: config.receiver,
          token: config.token,
        });
      }
    } finally {
      leave();
    }
  }
}

function requirementsOf(
  { network, token, accounts }: Devnet,
  { config: { receiverAuthorizer } }: ChannelAccount,
): PaymentRequirements {
  return {
    ...{ scheme: "batch-settlement", network, asset: token, payTo: accounts.seller.address },
    ...{ amount: "1", maxTimeoutSeconds: 60 },
    extra: { ...tokenDomain, receiverAuthorizer, withdrawDelay },
  };
}
