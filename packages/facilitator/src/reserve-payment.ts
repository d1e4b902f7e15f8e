import type { LookUp, ReleaseCause, Reservations, Reserved } from "@coinslot/protocol";
import type { FacilitatorContext } from "./facilitator-context.ts";
import { openedAnew } from "./keep-engine.ts";
import { lookUpPayment } from "./ledger/queries/look-up-payments.ts";
import { admitPayment } from "./settle/admit-payment.ts";
import { canPay } from "./settle/can-pay.ts";
import { toReserved } from "./settle/reserved.ts";
import { settleResponseOf } from "./settle/settle-response.ts";
import { outOfGasMoney } from "./settle/unavailable-errors.ts";
import type { Engine } from "./start-engine.ts";

/** Availability of an authorization for a request: `lookUp` of a facilitator. */
export async function lookUpForGate(
  { context }: Engine,
  request: Parameters<Reservations["lookUp"]>[0],
): Promise<LookUp> {
  const { availability, payment, answer } = await lookUpPayment(context.ledger, request);
  if (availability !== "delivered" && availability !== "refunded") return { state: availability };
  if (payment === undefined) return { state: "free" };
  if (availability === "refunded") {
    return { state: availability, settlement: settleResponseOf({ payment }) };
  }
  return { state: "delivered", settlement: settleResponseOf({ payment }), answer };
}

/** Takes an authorization for one request: `reserve` of a facilitator. */
export async function reserveForGate(
  engine: Engine,
  { engine: kept, metrics, settings, stops }: FacilitatorContext,
  request: Parameters<Reservations["reserve"]>[0],
): Promise<Reserved> {
  const { context, settlements } = engine;
  const { ledger, simulationCache } = context;
  const { id } = request;
  if (request.sold?.refund !== undefined) engine.refunds.expect();
  const stopped = stops.refusalOf(id.network, request.sold?.route);
  if (stopped !== undefined || !canPay(settlements, id.network)) {
    // A payment that is under way already can be resumed: that takes no gas.
    const { availability } = await lookUpPayment(ledger, request);
    if (availability === "free") throw stopped ?? outOfGasMoney(id.network);
  }
  const startedAt = performance.now();
  const wish = { gasAtRisk: simulationCache.gasAtRisk(id), ...request };
  const result = await admitPayment({ ledger, settlements }, wish);
  metrics.reserveSeconds(startedAt);
  // No later engine knows this reservation: that of a process which ends.
  if (!kept.isWorking(engine)) throw openedAnew();
  await settings.faultPoint("reserved");
  return toReserved(id, result);
}

/** Returns whether a reservation that ends so counts against its payer. */
export function countsAgainstPayer(cause: ReleaseCause, hasRun: boolean): boolean | "if_failed" {
  if (cause === "refused") return "if_failed";
  return hasRun && (cause === "handler_failed" || cause === "disconnected");
}

/** Returns whether the buyer of a settled payment has left; `undefined`: the cause does not say. */
export function isAbandoned(cause: ReleaseCause): boolean | undefined {
  if (cause === "unused") return undefined;
  return cause === "disconnected";
}
