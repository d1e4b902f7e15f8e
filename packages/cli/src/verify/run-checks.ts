import { type Check, type Finding, failed, notChecked } from "./check.ts";
import { offeredWires } from "./offers/read-offers.ts";
import type { OfferProbe, Probe } from "./probe.ts";
import { NotCheckedError, SellerError } from "./seller-error.ts";
import { type WireName, wireNames } from "./way.ts";

/** One line of the result. */
export interface Row extends Finding {
  check: string;
  protocol?: WireName;
}

/** The tools of a run. */
export interface Tools {
  offers: OfferProbe;
  /** `undefined` where nothing is paid; `reason` says why. */
  payments: Probe | undefined;
  reason: string;
}

/** Runs checks one after the other. */
export async function runChecks(checks: readonly Check[], tools: Tools): Promise<Row[]> {
  const rows: Row[] = [];
  for (const check of checks) {
    if (check.scope === "route") {
      rows.push({ check: check.name, ...(await settle(() => runOnRoute(check, tools))) });
      continue;
    }
    // Where nothing is paid, one row says so for all protocols.
    if (check.needsPayer && tools.payments === undefined) {
      rows.push({ check: check.name, ...notChecked(tools.reason) });
      continue;
    }
    for (const protocol of wiresOf(check, tools)) {
      const finding = await settle(() => runOnWire(check, tools, protocol));
      rows.push({ check: check.name, protocol, ...finding });
    }
  }
  return rows;
}

/** Offers are judged for every protocol; other checks have a row for each that is offered. */
function wiresOf({ needsPayer }: Check, { offers }: Tools): readonly WireName[] {
  return needsPayer ? offeredWires(offers.unpaid.offers) : wireNames;
}

async function runOnRoute(check: Check & { scope: "route" }, tools: Tools): Promise<Finding> {
  if (!check.needsPayer) return check.run(tools.offers);
  if (tools.payments === undefined) return notChecked(tools.reason);
  return check.run(tools.payments);
}

async function runOnWire(
  check: Check & { scope: "wire" },
  { offers, payments, reason }: Tools,
  wire: WireName,
): Promise<Finding> {
  if (!check.needsPayer) return check.run(offers, wire);
  if (payments === undefined) return notChecked(reason);
  if (!payments.plan.wires.includes(wire)) {
    return notChecked("it has no way in the planned token within --max-price");
  }
  return check.run(payments, wire);
}

/** A check without its answer has failed by the seller, or was not made by us. */
async function settle(run: () => Promise<Finding>): Promise<Finding> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SellerError) return failed(error.message);
    if (error instanceof NotCheckedError) return notChecked(error.message);
    throw error;
  }
}
