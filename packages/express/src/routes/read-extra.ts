import { isDeepStrictEqual } from "node:util";
import type { PaymentFlow } from "@coinslot/protocol";
import { isRecord } from "../is-record.ts";

/** Either the `extra` of a way to pay, or its problem. */
export type ReadExtra =
  | { ok: true; extra: Record<string, unknown> }
  | { ok: false; problems: readonly string[] };

const maxExtra = 1024;

/**
 * Reads `extra`: JSON for the buyer. Its reserved members belong to the route, and may only repeat
 * the route's values.
 */
export function readExtra(value: unknown, paymentFlow: PaymentFlow): ReadExtra {
  const members = readMembers(value);
  if (members === undefined) {
    return { ok: false, problems: [`must be JSON of at most ${maxExtra} characters`] };
  }
  const { assetTransferMethod = "eip3009", paymentFlow: flow = paymentFlow, ...extra } = members;
  const { decimals } = extra;
  const problems: string[] = [];
  if (assetTransferMethod !== "eip3009") {
    problems.push('.assetTransferMethod must be "eip3009": no other is settled');
  }
  if (flow !== paymentFlow) {
    problems.push(
      `.paymentFlow is ${JSON.stringify(flow)}, and the route's is "${paymentFlow}": write paymentFlow beside accepts`,
    );
  }
  if (decimals !== undefined && !isDecimals(decimals)) {
    problems.push(".decimals must be a whole number from 0 to 255");
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, extra };
}

/** The members as they would arrive, if they can. */
function readMembers(value: unknown): Record<string, unknown> | undefined {
  if (value === undefined) return {};
  if (!isRecord(value)) return undefined;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const said = Object.fromEntries(members);
  try {
    const text = JSON.stringify(said);
    if (text.length > maxExtra) return undefined;
    const arrives = members.every(([, member]) => isUnchangedByJson(member));
    return arrives || isDeepStrictEqual(JSON.parse(text), said) ? said : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a value is known to be the same after a way through JSON. */
function isUnchangedByJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value === "string" || typeof value === "boolean" || value === null;
}

function isDecimals(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;
}
