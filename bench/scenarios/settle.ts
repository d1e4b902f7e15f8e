import { startDevnet } from "@coinslot/devnet";
import type { Facilitator } from "@coinslot/protocol";
import { startFacilitators } from "../support/facilitators.ts";
import type { Figure } from "../support/figure.ts";
import { timeConcurrently } from "../support/measure.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";

/** Settlement in this process, 128 at once, each transaction mined at once. */
export async function settle(ledger: "sqlite" | "postgres"): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const { ours, reference, close } = await startFacilitators(devnet, ledger);
  try {
    await fundPayers(devnet);
    const requirements = requirementsOf(devnet);
    const payments = await signPayments(devnet, 4096 + 256 + 640);
    const settleWith = (facilitator: Facilitator) => async (payment: (typeof payments)[number]) => {
      const { success, errorReason } = await facilitator.settle(payment, requirements);
      if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
    };
    await timeConcurrently(payments.splice(0, 256), 128, settleWith(ours));
    const mine = payments.splice(0, 4096);
    const ourRate = mine.length / (await timeConcurrently(mine, 128, settleWith(ours)));
    await timeConcurrently(payments.splice(0, 128), 128, settleWith(reference));
    const theirs = payments.splice(0, 512);
    const theirRate = theirs.length / (await timeConcurrently(theirs, 128, settleWith(reference)));
    return [
      {
        scenario: `settle, 128 at once, instant blocks, ${ledger}`,
        ours: `${ourRate.toFixed(0)} /s`,
        reference: `${theirRate.toFixed(0)} /s`,
        ratio: `${(ourRate / theirRate).toFixed(1)}x`,
        goal: "15x",
      },
    ];
  } finally {
    await close();
    await devnet.stop();
  }
}
