import { startDevnet } from "@coinslot/devnet";
import type { Facilitator, PaymentPayloadV2 } from "@coinslot/protocol";
import { startFacilitators } from "../support/facilitators.ts";
import type { Figure } from "../support/figure.ts";
import { mineEverySecond } from "../support/mine-every-second.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";
import { type Side, takeTurns, turns } from "../support/take-turns.ts";

/** Settlement in this process, 128 at once, each transaction mined at once. */
export async function settle(ledger: "sqlite" | "postgres"): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const { ours, reference, close } = await startFacilitators(devnet, ledger);
  try {
    await fundPayers(devnet);
    const requirements = requirementsOf(devnet);
    const sideOf = async (
      facilitator: Facilitator,
      load: { warmUp: number; perTurn: number },
    ): Promise<Side<PaymentPayloadV2>> => ({
      ...load,
      jobs: await signPayments(devnet, load.warmUp + turns * load.perTurn),
      run: async (payment) => {
        const { success, errorReason } = await facilitator.settle(payment, requirements);
        if (!success) throw new Error(`A good payment was not settled: ${errorReason}`);
      },
    });
    const rates = await takeTurns(devnet, {
      ours: await sideOf(ours, { warmUp: 2048, perTurn: 4096 }),
      reference: {
        ...(await sideOf(reference, { warmUp: 256, perTurn: 512 })),
        beside: () => mineEverySecond(devnet),
      },
    });
    return [
      {
        scenario: `settle, 128 at once, instant blocks, ${ledger}`,
        ours: { value: rates.ours, unit: "/s" },
        reference: { value: rates.reference, unit: "/s" },
        ratio: rates.ratio,
        goal: { of: "ratio", atLeast: 15 },
      },
    ];
  } finally {
    await close();
    await devnet.stop();
  }
}
