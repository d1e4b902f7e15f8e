import { startDevnet } from "@coinslot/devnet";
import { startFacilitators } from "../support/facilitators.ts";
import type { Figure } from "../support/figure.ts";
import { timeConcurrently } from "../support/measure.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";

const blockGasLimit = 30_000_000n;

/**
 * Settlement into blocks of one second and 30 million gas, 1,000 at once; and gas in a batch of 50.
 */
export async function settleInBlocks(): Promise<Figure[]> {
  return [await throughput(), await gasInBatch()];
}

async function throughput(): Promise<Figure> {
  const devnet = await startDevnet({ accountCount: 40, blockTimeSeconds: 1, blockGasLimit });
  const { ours, reference, close } = await startFacilitators(devnet);
  try {
    await devnet.setAutomine(true);
    await fundPayers(devnet);
    await devnet.setAutomine(false);
    await devnet.setIntervalMining(1);
    const requirements = requirementsOf(devnet);
    const payments = await signPayments(devnet, 6000 + 512);
    const mine = payments.splice(0, 6000);
    const first = await devnet.client.getBlockNumber();
    let handedOver = 0;
    let endOfLoad = first;
    const ourSeconds = await timeConcurrently(mine, 1000, async (payment) => {
      handedOver += 1;
      if (handedOver === mine.length) endOfLoad = await devnet.client.getBlockNumber();
      const { success, errorReason } = await ours.settle(payment, requirements);
      if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
    });
    const used: number[] = [];
    for (let number = first + 1n; number <= endOfLoad; number += 1n) {
      const block = await devnet.client.getBlock({ blockNumber: number });
      used.push(Number(block.gasUsed) / Number(blockGasLimit));
    }
    // The first one was begun before any load, and those after the last payment's arrival have less
    // and less.
    const full = used.filter((share) => share > 0).slice(1);
    const share = full.reduce((sum, value) => sum + value, 0) / Math.max(1, full.length);
    const theirSeconds = await timeConcurrently(payments, 128, async (payment) => {
      const { success, errorReason } = await reference.settle(payment, requirements);
      if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
    });
    return {
      scenario: "settle, 1 s blocks of 30M gas, 1,000 at once",
      ours: { value: mine.length / ourSeconds, unit: "/s" },
      reference: { value: payments.length / theirSeconds, unit: "/s", note: "128 at once" },
      ratio: { value: share, to: "the gas of a block under load" },
      goal: { of: "ratio", atLeast: 0.9 },
    };
  } finally {
    await close();
    await devnet.stop();
  }
}

async function gasInBatch(): Promise<Figure> {
  const devnet = await startDevnet({ accountCount: 60 });
  const { ours, reference, close } = await startFacilitators(devnet);
  try {
    await fundPayers(devnet);
    const requirements = requirementsOf(devnet);
    const payments = await signPayments(devnet, 2 * 56 + 2);
    // First payments of a payer or to a recipient cost more gas, and are not compared.
    await ours.settle(payments.pop() ?? fail(), requirements);
    const alone = await reference.settle(payments.pop() ?? fail(), requirements);
    const aloneGas = await gasUsed(alone.transaction);

    await devnet.setAutomine(false);
    const settlements = Promise.all(
      payments.slice(0, 51).map((payment) => ours.settle(payment, requirements)),
    );
    await devnet.setIntervalMining(1);
    const hashes = (await settlements).map(({ transaction }) => transaction);
    const sizes = new Map<string, number>();
    for (const hash of hashes) sizes.set(hash, (sizes.get(hash) ?? 0) + 1);
    const [largest = ["", 1]] = [...sizes].sort(([, a], [, b]) => b - a);
    const each = Number(await gasUsed(largest[0])) / largest[1];
    return {
      scenario: `gas of one payment in a batch of ${largest[1]}`,
      ours: { value: each, unit: "gas" },
      reference: { value: Number(aloneGas), unit: "gas", note: "alone" },
      ratio: { value: each / Number(aloneGas) },
      goal: { of: "ratio", atMost: 0.67 },
    };
  } finally {
    await close();
    await devnet.stop();
  }

  async function gasUsed(hash: string): Promise<bigint> {
    if (!/^0x[0-9a-f]{64}$/.test(hash)) fail();
    const receipt = await devnet.client.getTransactionReceipt({ hash: hash as `0x${string}` });
    return receipt.gasUsed;
  }
}

function fail(): never {
  throw new Error("The benchmark's own payments are not as expected.");
}
