import type { Payment } from "@coinslot/protocol";
import { schemeOf } from "../schemes/registry.ts";
import type { DiagnosisTools } from "../schemes/scheme.ts";
import { goesThrough, type SimulationResult } from "../schemes/simulation-result.ts";
import { refuse } from "./refuse.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Turns a simulation's result into a verdict on a payment.
 *
 * @throws FacilitatorError when a failure cannot be explained because the chain is unreachable.
 */
export async function judge(
  payment: Payment,
  {
    result,
    isSignedByPayer,
    tools,
  }: { result: SimulationResult; isSignedByPayer: boolean; tools: DiagnosisTools },
): Promise<Verdict> {
  const { payerHasCode, gasUsed } = result;
  const payer = payment.authorization.from;
  if (!payerHasCode && !isSignedByPayer) {
    return refuse(schemeOf(payment).reasons.signature, { payer });
  }
  if (goesThrough(result)) {
    const balance = { amount: result.balance, blockNumber: result.blockNumber };
    return { isValid: true, payer, payment, payerHasCode, balance, gasUsed };
  }
  const { diagnose, reasons } = schemeOf(payment);
  const reason = await diagnose(payment, result, tools);
  const message = reason === reasons.trialFailed ? explain(result) : undefined;
  return refuse(reason, { payer, message });
}

/** More detail than the reason, where it is known. */
function explain(result: SimulationResult): string | undefined {
  if (result.outcome === "succeeded") {
    return "The token accepts the authorization, but does not move exactly the amount to payTo.";
  }
  const { revertReason } = result;
  return revertReason && `The simulated transfer fails: ${revertReason}`;
}
