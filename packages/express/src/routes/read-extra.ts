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
  const said = Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
  try {
    const text = JSON.stringify(said);
    const arrived: unknown = JSON.parse(text);
    const isWhole = text.length <= maxExtra && isDeepStrictEqual(arrived, said);
    return isWhole ? said : undefined;
  } catch {
    return undefined;
  }
}

function isDecimals(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;
}
