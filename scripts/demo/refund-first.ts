import { openLedgerReader, type Refund } from "@coinslot/facilitator";
import type { Market } from "./market.ts";
import { runCommand } from "./run-command.ts";

const patienceMs = 60_000;
const blocksAtOnce = 32;

/** Gives the oldest payment back, and lets blocks pass until that is final. */
export async function refundFirst(market: Market): Promise<Refund> {
  const reader = await openLedgerReader({ url: market.ledger });
  try {
    const { payments } = await reader.payments.list();
    const payment = payments.at(-1)?.id;
    if (payment === undefined) throw new Error("The seller's ledger has no payment.");
    await runCommand(market, [
      "refunds",
      "create",
      payment,
      "--reason",
      "a demonstration",
      "--yes",
    ]);
    const patience = AbortSignal.timeout(patienceMs);
    for (;;) {
      await market.devnet.client.mine({ blocks: blocksAtOnce });
      const { refunds } = await reader.refunds.list({ payment });
      const [refund] = refunds;
      if (refund?.state === "final") return refund;
      if (patience.aborted) throw new Error(`The refund is ${refund?.state}, and not final.`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    await reader.close();
  }
}
