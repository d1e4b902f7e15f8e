import type { ReservingFacilitator } from "@coinslot/protocol";
import { engineOf, type FacilitatorContext, withEngine } from "./facilitator-context.ts";
import { findRefusal } from "./ledger/payments/admit-code.ts";
import { isSettlementBegun, isUnderWay } from "./settle/settle-payment.ts";
import { burntGas } from "./settle/unavailable-errors.ts";
import { refuse } from "./verify/refuse.ts";
import { toVerifyResponse } from "./verify/verdict.ts";

type VerifyLocally = NonNullable<ReservingFacilitator["verifyLocally"]>;

/** The checks that need no chain: `verifyLocally` of a facilitator. */
export async function verifyBeforeChain(
  facilitator: FacilitatorContext,
  ...[payload, requirements, options]: Parameters<VerifyLocally>
): Promise<Awaited<ReturnType<VerifyLocally>>> {
  const verdict = await facilitator.verifier.screen(payload, requirements, options);
  const response = toVerifyResponse(verdict);
  if (verdict.isValid) return { ...response, isSignatureKnown: verdict.isSignedByPayer };
  if (verdict.invalidReason !== "invalid_exact_evm_signature") return response;
  // A payer may have had code when its payment began, which is resumed all the same.
  const { payer } = verdict;
  return payer && (await isBegun(facilitator, payload, requirements))
    ? { isValid: true, payer, isSignatureKnown: () => true }
    : response;
}

/**
 * All checks: `verify` of a facilitator. The engine keeps the result for the transaction to come.
 */
export async function verifyOnChain(
  facilitator: FacilitatorContext,
  ...[payload, requirements, options]: Parameters<ReservingFacilitator["verify"]>
): Promise<Awaited<ReturnType<ReservingFacilitator["verify"]>>> {
  const { verifier, metrics, stops } = facilitator;
  const stopped = stops.refusalOf(requirements.network, options?.route);
  if (stopped !== undefined && !(await isOpen(facilitator, payload, requirements))) throw stopped;
  const startedAt = performance.now();
  const verdict = await verifier.verify(payload, requirements, options);
  metrics.verifySeconds(startedAt);
  if (!verdict.isValid) return toVerifyResponse(verdict);
  const { payment, balance, payer, payerHasCode, gasUsed } = verdict;
  if (payerHasCode) {
    const forMs = await withEngine(facilitator, ({ context }) =>
      findRefusal(context.ledger, payer),
    );
    if (forMs !== undefined) {
      const message = burntGas(forMs);
      return toVerifyResponse(refuse("payer_not_accepted", { payer, message }));
    }
  }
  const { context } = await engineOf(facilitator);
  context.simulationCache.remember(payment, { payerHasCode, gasUsed });
  return { balance, ...toVerifyResponse(verdict) };
}

function isOpen(
  facilitator: FacilitatorContext,
  ...[payload, requirements]: Parameters<ReservingFacilitator["verify"]>
): Promise<boolean> {
  return withEngine(facilitator, (engine) => isUnderWay(engine, payload, requirements));
}

function isBegun(
  facilitator: FacilitatorContext,
  ...[payload, requirements]: Parameters<ReservingFacilitator["verify"]>
): Promise<boolean> {
  return withEngine(facilitator, (engine) => isSettlementBegun(engine, payload, requirements));
}
