import type { InvalidReason, Payment } from "@coinslot/protocol";
import { goesThrough, type SimulationResult } from "../simulation/simulation-result.ts";
import { type DiagnosisTools, diagnose } from "./diagnose.ts";
import { refuse } from "./refuse.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Says what a chain's reading means for a payment.
 *
 * @throws FacilitatorError when a failure cannot be explained because the chain cannot be asked.
 */
export async function judge(
  payment: Payment,
  {
    reading,
    isSignedByPayer,
    tools,
  }: { reading: SimulationResult; isSignedByPayer: boolean; tools: DiagnosisTools },
): Promise<Verdict> {
  const { payerHasCode, gasUsed } = reading;
  const payer = payment.authorization.from;
  if (!payerHasCode && !isSignedByPayer) return refuse("invalid_exact_evm_signature", { payer });
  if (goesThrough(reading)) {
    const balance = { amount: reading.balance, blockNumber: reading.blockNumber };
    return { isValid: true, payer, payment, payerHasCode, balance, gasUsed };
  }
  const reason = await diagnose(payment, reading, tools);
  return refuse(reason, { payer, message: explain(reason, reading) });
}

/** More than the reason says, where we know more. */
function explain(reason: InvalidReason, reading: SimulationResult): string | undefined {
  if (reason !== "invalid_exact_evm_transaction_simulation_failed") return undefined;
  if (reading.outcome === "succeeded") {
    return "The token takes the authorization, but does not move exactly the amount to payTo.";
  }
  const { revertReason } = reading;
  return revertReason && `The transfer fails when it is tried: ${revertReason}`;
}
