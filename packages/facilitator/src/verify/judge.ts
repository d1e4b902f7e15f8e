import type { Payment } from "@coinslot/protocol";
import { schemeOf } from "../schemes/registry.ts";
import type { DiagnosisTools } from "../schemes/scheme.ts";
import { goesThrough, type SimulationResult } from "../schemes/simulation-result.ts";
import { refuse } from "./refuse.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Turns a chain's reading into a verdict on a payment.
 *
 * @throws FacilitatorError when a failure cannot be explained because the chain is unreachable.
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
  if (!payerHasCode && !isSignedByPayer) {
    return refuse(schemeOf(payment).reasons.signature, { payer });
  }
  if (goesThrough(reading)) {
    const balance = { amount: reading.balance, blockNumber: reading.blockNumber };
    return { isValid: true, payer, payment, payerHasCode, balance, gasUsed };
  }
  const { diagnose, reasons } = schemeOf(payment);
  const reason = await diagnose(payment, reading, tools);
  const message = reason === reasons.trialFailed ? explain(reading) : undefined;
  return refuse(reason, { payer, message });
}

/** More detail than the reason, where it is known. */
function explain(reading: SimulationResult): string | undefined {
  if (reading.outcome === "succeeded") {
    return "The token accepts the authorization, but does not move exactly the amount to payTo.";
  }
  const { revertReason } = reading;
  return revertReason && `The simulated transfer fails: ${revertReason}`;
}
