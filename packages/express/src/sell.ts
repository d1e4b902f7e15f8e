import type { SealedAnswer } from "@coinslot/protocol";
import { answerUnsettled, answerUsedUp } from "./answer.ts";
import { findKeptAnswer, keepAnswer } from "./replay/kept-answer.ts";
import { releaseSale } from "./reservations/end-reservation.ts";
import { handOver, handOverKept, handOverStream } from "./response/hand-over.ts";
import type { HeldAnswer } from "./response/held-answer.ts";
import type { HeldResponse } from "./response/hold-response.ts";
import { runHeld } from "./response/run-held.ts";
import type { Sale } from "./sale.ts";
import { settleSale } from "./settle-sale.ts";

/** The handler works, the money moves, the answer goes out. */
export async function sellOnAnswer(sale: Sale): Promise<void> {
  const run = await runHeld(sale);
  if (run === undefined) return;
  const { held, answer, isWaived } = run;
  if (answer.status >= 400 || isWaived) {
    await releaseSale(sale, isWaived ? "waived" : "handler_failed");
    return releaseUnpaid(sale, held, answer);
  }
  const settlement = await settleSale(sale, { answer });
  if (settlement.success) return handOver({ settlement, ...sale }, held, answer);
  const cause = releaseCauseOf(settlement);
  if (cause === "outcome_unknown") keepAnswer(sale, answer);
  await releaseSale(sale, cause);
  held.replace(() => answerUnsettled(sale, settlement));
}

/** The money moves, and the handler answers freely. */
export async function sellUpfront(sale: Sale): Promise<void> {
  const settlement = await settleSale(sale, { runsHandler: true });
  if (settlement.success) return handOverStream({ settlement, ...sale });
  await releaseSale(sale, releaseCauseOf(settlement));
  answerUnsettled(sale, settlement);
}

/** A payment that was under way: its outcome, then its answer, or the handler once more. */
export async function resumeSale(
  sale: Sale,
  { answer: sealed, mayRun }: { answer?: SealedAnswer | undefined; mayRun: boolean },
): Promise<void> {
  const kept = findKeptAnswer(sale, sealed);
  const settlement = await settleSale(sale, { runsHandler: kept === undefined && mayRun });
  if (!settlement.success) {
    await releaseSale(sale, releaseCauseOf(settlement));
    return answerUnsettled(sale, settlement);
  }
  const paid = { settlement, ...sale };
  if (kept !== undefined) return handOverKept(paid, kept, settlement);
  if (!mayRun) {
    await releaseSale(sale, "unused");
    return answerUsedUp(sale, settlement);
  }
  if (sale.route.paymentFlow === "upfront") return handOverStream(paid);
  const run = await runHeld(paid);
  if (run === undefined) return;
  const { held, answer } = run;
  if (answer.status < 400) return handOver(paid, held, answer);
  await releaseSale(sale, "handler_failed");
  releaseUnpaid(sale, held, answer);
}

/** Sends an answer that has no receipt: of a failed handler, or of a request that was waived. */
function releaseUnpaid(
  { presented, response }: Sale,
  held: HeldResponse,
  answer: HeldAnswer,
): void {
  held.release(answer, () => presented.wire.removeReceipt?.(response));
}

function releaseCauseOf({ errorReason }: { errorReason?: string }) {
  return errorReason === "settlement_pending" ? "outcome_unknown" : "refused";
}
