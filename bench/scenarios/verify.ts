import { startDevnet } from "@coinslot/devnet";
import type { Facilitator } from "@coinslot/protocol";
import { startFacilitators } from "../support/facilitators.ts";
import type { Figure } from "../support/figure.ts";
import { percentile, timeConcurrently, timeEach } from "../support/measure.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";

/** Verification in this process with simulation on the chain: 128 at once, and one at a time. */
export async function verify(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const { ours, reference, close } = await startFacilitators(devnet);
  try {
    await fundPayers(devnet);
    const requirements = requirementsOf(devnet);
    const payments = await signPayments(devnet, 1024);
    const verifyWith = (facilitator: Facilitator) => async (payment: (typeof payments)[number]) => {
      const { isValid, invalidReason } = await facilitator.verify(payment, requirements);
      if (!isValid) throw new Error(`A valid payment was refused: ${invalidReason}`);
    };
    const rates: number[] = [];
    const times: number[] = [];
    for (const facilitator of [ours, reference]) {
      const run = verifyWith(facilitator);
      await timeConcurrently(payments.slice(0, 256), 128, run);
      rates.push(payments.length / (await timeConcurrently(payments, 128, run)));
      times.push(percentile(await timeEach(payments.slice(0, 200), run), 0.5));
    }
    const [ourRate = 0, referenceRate = 0] = rates;
    const [ourTime = 0, referenceTime = 0] = times;
    return [
      {
        scenario: "verify, 128 at once",
        ours: { value: ourRate, unit: "/s" },
        reference: { value: referenceRate, unit: "/s" },
        ratio: { value: ourRate / referenceRate },
        goal: { of: "ratio", atLeast: 8 },
      },
      {
        scenario: "verify, one at a time, p50",
        ours: { value: ourTime, unit: "ms" },
        reference: { value: referenceTime, unit: "ms" },
        ratio: { value: ourTime / referenceTime },
        goal: { of: "ratio", atMost: 0.7 },
      },
    ];
  } finally {
    await close();
    await devnet.stop();
  }
}
