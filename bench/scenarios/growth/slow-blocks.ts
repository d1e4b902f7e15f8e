import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { type PaymentPayloadV2, toLowerHex } from "@coinslot/protocol";
import { startFacilitators } from "../../support/facilitators.ts";
import type { Figure } from "../../support/figure.ts";
import { percentile } from "../../support/measure.ts";
import { mineEvery } from "../../support/mine-every.ts";
import { fundPayers, requirementsOf, signPayments } from "../../support/signed-payments.ts";

/** Seconds under load of the longest rows. The others take their turns meanwhile. */
const seconds = Number(process.env.BENCH_SLOW_BLOCKS_SECONDS ?? 150);
const quickBlocks = [0.25, 1, 2];
const slowBlock = 12;
const busy = 50;

/**
 * Gas of a payment at 50 a second under the previous rule. While a transaction waited for its
 * block, only a full one followed. Measured at 73261567.
 */
const gasOfGathering: Readonly<Record<number, number>> = {
  0.25: 51_600,
  1: 47_050,
  2: 46_420,
  12: 45_460,
};

interface Load {
  blockSeconds: number;
  /** Payments a second, at random times. */
  rate: number;
  seconds: number;
}

interface Loaded extends Load {
  /** Of each payment: time from the end of its handler to its outcome, in blocks. */
  waits: number[];
  /** Payments that were answered "pending" at first. */
  pending: number;
  gas: number;
  transactions: number;
  /** Blocks that hold a transaction. */
  blocks: number;
}

/** A chain under load, before and after. */
interface Chain {
  run(): Promise<Loaded>;
}

/**
 * The wait for a block. Chains have blocks of 0.25, 1, 2 and 12 seconds, each at 0.5, 5 and 50
 * payments a second. Times are in blocks, from the end of the handler.
 */
export async function slowBlocks(): Promise<Figure[]> {
  const turn = seconds / quickBlocks.length;
  const long = await prepareAll([
    ...[0.5, 5, busy].map((rate) => ({ blockSeconds: slowBlock, rate, seconds })),
    ...quickBlocks.map((blockSeconds) => ({ blockSeconds, rate: 0.5, seconds })),
  ]);
  const turns: Chain[][] = [];
  for (const blockSeconds of quickBlocks) {
    turns.push(await prepareAll([5, busy].map((rate) => ({ blockSeconds, rate, seconds: turn }))));
  }
  const results = Promise.all(long.map((chain) => chain.run()));
  const inTurn: Loaded[] = [];
  for (const chains of turns) {
    inTurn.push(...(await Promise.all(chains.map((chain) => chain.run()))));
  }
  const loads = [...(await results), ...inTurn].sort(
    (a, b) => a.blockSeconds - b.blockSeconds || a.rate - b.rate,
  );
  return [
    ...loads.flatMap(waitsOf),
    ...loads.filter(({ rate }) => rate === busy).flatMap(gasOf),
    {
      scenario: "payments answered 'pending' at first",
      ours: { value: loads.reduce((sum, { pending }) => sum + pending, 0), unit: "" },
      goal: { of: "ours", atMost: 0 },
    },
  ];
}

function waitsOf({ blockSeconds, rate, waits }: Loaded): Figure[] {
  const scenario = `blocks of ${blockSeconds} s, ${rate}/s`;
  return [
    {
      scenario: `${scenario}, p50`,
      ours: { value: percentile(waits, 0.5), unit: "blocks" },
      goal: { of: "ours", atMost: 0.7 },
    },
    {
      scenario: `${scenario}, p99`,
      ours: { value: percentile(waits, 0.99), unit: "blocks" },
      goal: { of: "ours", atMost: 1.6 },
    },
  ];
}

function gasOf({ blockSeconds, rate, waits, gas, transactions, blocks }: Loaded): Figure[] {
  const scenario = `blocks of ${blockSeconds} s, ${rate}/s`;
  const each = gas / waits.length;
  const before = gasOfGathering[blockSeconds] ?? Number.NaN;
  return [
    {
      scenario: `${scenario}, gas of a payment`,
      ours: { value: each, unit: "gas" },
      ratio: { value: each / before, to: "one full after another" },
      goal: { of: "ratio", atMost: 1.1 },
    },
    {
      scenario: `${scenario}, transactions in a block`,
      ours: { value: transactions / blocks, unit: "transactions" },
    },
  ];
}

/** One after the other: each signs its payments. */
async function prepareAll(loads: readonly Load[]): Promise<Chain[]> {
  const chains: Chain[] = [];
  for (const load of loads) chains.push(await prepare(load));
  return chains;
}

async function prepare(load: Load): Promise<Chain> {
  const { blockSeconds, rate } = load;
  const devnet = await startDevnet({ accountCount: 40 });
  await fundPayers(devnet);
  // The first payment to a seller costs more gas.
  await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
  const payments = await signPayments(devnet, Math.ceil(rate * load.seconds));
  return {
    async run() {
      await devnet.setAutomine(false);
      const stopMining = await mineInterval(devnet, blockSeconds);
      const { ours, close } = await startFacilitators(devnet);
      try {
        // Long enough to see the pace of quick blocks. That of slow ones is seen under load.
        await sleep(3_000);
        const before = await devnet.client.getBlockNumber();
        const paid = await Promise.all(
          arrivals(rate, payments.length).map(async (afterMs, index) => {
            await sleep(afterMs);
            return payOne({ devnet, ours, payment: payments[index] });
          }),
        );
        const waits = paid.map(({ waitMs }) => waitMs / 1000 / blockSeconds);
        const pending = paid.filter(({ wasPending }) => wasPending).length;
        return { ...load, waits, pending, ...(await readBlocks(devnet, before)) };
      } finally {
        await stopMining();
        await close();
        await devnet.stop();
      }
    },
  };
}

/** Anvil keeps whole seconds by itself. */
async function mineInterval(devnet: Devnet, blockSeconds: number): Promise<() => Promise<void>> {
  if (!Number.isInteger(blockSeconds)) return mineEvery(devnet, blockSeconds * 1000);
  await devnet.setIntervalMining(blockSeconds);
  return () => devnet.setIntervalMining(0);
}

/** Random times, the same in each run: as many payments a second on average. */
function arrivals(rate: number, count: number): number[] {
  let state = 1;
  let at = 0;
  return Array.from({ length: count }, () => {
    state = (state * 48_271) % 2_147_483_647;
    at += (-Math.log(state / 2_147_483_647) / rate) * 1000;
    return at;
  });
}

async function payOne(options: {
  devnet: Devnet;
  ours: CoinslotFacilitator;
  payment: PaymentPayloadV2 | undefined;
}): Promise<{ waitMs: number; wasPending: boolean }> {
  const { devnet, ours, payment } = options;
  if (payment === undefined) throw new Error("The bench has signed too few payments.");
  const requirements = requirementsOf(devnet);
  const reservation = await reserve({ devnet, ours, payment });
  const startedAt = performance.now();
  let wasPending = false;
  for (;;) {
    const { success, errorReason } = await ours.settle(payment, requirements, { reservation });
    if (success) break;
    if (errorReason !== "settlement_pending") {
      throw new Error(`A good payment was not settled: ${errorReason}`);
    }
    wasPending = true;
  }
  const waitMs = performance.now() - startedAt;
  await ours.deliver(reservation);
  return { waitMs, wasPending };
}

/** Verifies and reserves, as a gate does before it runs a handler. */
async function reserve(options: {
  devnet: Devnet;
  ours: CoinslotFacilitator;
  payment: PaymentPayloadV2;
}) {
  const { devnet, ours, payment } = options;
  const requirements = requirementsOf(devnet);
  const verified = await ours.verify(payment, requirements);
  const { authorization } = payment.payload;
  if (!verified.isValid || !("balance" in verified)) throw new Error("A payment was not valid.");
  const reserved = await ours.reserve({
    id: {
      network: devnet.network,
      asset: toLowerHex(devnet.token),
      payer: toLowerHex(authorization.from),
      nonce: toLowerHex(authorization.nonce),
    },
    fingerprint: "GET /",
    value: BigInt(authorization.value),
    validBefore: BigInt(authorization.validBefore),
    payTo: toLowerHex(authorization.to),
    balance: verified.balance,
  });
  if (reserved.state !== "reserved") throw new Error(`A payment was ${reserved.state}.`);
  return reserved.reservation;
}

/** All of the blocks' transactions are of the facilitator. */
async function readBlocks({ client }: Devnet, before: bigint) {
  const last = await client.getBlockNumber();
  const sum = { gas: 0, transactions: 0, blocks: 0 };
  for (let number = before + 1n; number <= last; number += 1n) {
    const { gasUsed, transactions } = await client.getBlock({ blockNumber: number });
    if (transactions.length === 0) continue;
    sum.gas += Number(gasUsed);
    sum.transactions += transactions.length;
    sum.blocks += 1;
  }
  return sum;
}
