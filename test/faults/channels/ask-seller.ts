import {
  channelReceiptSchema,
  decodePaymentRequired,
  headerName,
  readChannelOffer,
} from "@coinslot/protocol";
import * as z from "zod";
import { failHeader, type PlannedVoucher } from "./voucher-plan.ts";

/** Outcome of one request. Amounts are in the token's smallest unit. */
export type VoucherAnswer =
  /** `cumulative`: all that was charged on the channel, by its receipt. */
  | { kind: "served"; charged: bigint; cumulative: bigint; content: string }
  /** Out of step: the seller has charged this much. */
  | { kind: "corrected"; charged: bigint }
  | { kind: "refused"; reason: string }
  /** The handler has failed: nothing was charged. */
  | { kind: "failed" }
  /** Worth another attempt. `mayBeCharged`: the answer is lost. */
  | { kind: "again"; why: string; afterMs: number; mayBeCharged: boolean };

const errorSchema = z.object({ error: z.string() });
const receiptSchema = z.object({ extra: channelReceiptSchema });
/** Time limit of a buyer for an answer. */
const patienceMs = 20_000;
/** Longest time that a buyer waits before it asks again, whatever the seller says. */
const maxPauseMs = 1_000;

/** Sends a voucher for a resource, once. */
export async function askSeller(options: {
  url: string;
  voucher: Pick<PlannedVoucher, "path" | "method" | "key">;
  header: string;
  hangUpAfterMs?: number | undefined;
  /** Asks the handler to fail. */
  isFailing?: boolean;
}): Promise<VoucherAnswer> {
  const { url, voucher, header, hangUpAfterMs = patienceMs, isFailing = false } = options;
  let response: Response;
  let body: string;
  try {
    response = await fetch(`${url}${voucher.path}`, {
      method: voucher.method,
      headers: {
        [headerName.paymentSignature]: header,
        ...(voucher.key === undefined ? {} : { [headerName.idempotencyKey]: voucher.key }),
        ...(isFailing ? { [failHeader]: "1" } : {}),
      },
      signal: AbortSignal.timeout(hangUpAfterMs),
    });
    body = await response.text();
  } catch (error) {
    const why = faultOf(error);
    // Without a connection no seller has the request.
    return { kind: "again", why, afterMs: 200, mayBeCharged: why !== "ECONNREFUSED" };
  }
  return readAnswer(response, body);
}

function readAnswer(response: Response, body: string): VoucherAnswer {
  const error = errorSchema.safeParse(parseJson(body)).data?.error ?? body.slice(0, 80);
  if (response.status === 200) return readServed(response, body);
  if (response.status === 402) return readRefused(response, error);
  if (response.status === 500 && error === "the handler failed") return { kind: "failed" };
  if (response.status === 400) return { kind: "refused", reason: `400 ${error}` };
  const seconds = Number(response.headers.get("retry-after") ?? 0.2);
  return {
    kind: "again",
    why: `${response.status} ${error}`,
    afterMs: Math.min(maxPauseMs, seconds * 1_000),
    mayBeCharged: error === "settlement_pending" || response.status === 500,
  };
}

function readServed(response: Response, content: string): VoucherAnswer {
  const text = response.headers.get(headerName.paymentResponse) ?? "";
  const { extra } = receiptSchema.parse(parseJson(Buffer.from(text, "base64").toString()));
  const { chargedAmount, channelState } = extra;
  const cumulative = channelState?.chargedCumulativeAmount;
  if (chargedAmount === undefined || cumulative === undefined) {
    throw new Error(`A receipt lacks its amounts: ${text}`);
  }
  return { kind: "served", charged: chargedAmount, cumulative, content };
}

function readRefused(response: Response, reason: string): VoucherAnswer {
  const text = response.headers.get(headerName.paymentRequired) ?? "";
  for (const { requirements } of decodePaymentRequired(text).accepts) {
    const charged = readChannelOffer(requirements)?.channelState?.chargedCumulativeAmount;
    if (charged !== undefined) return { kind: "corrected", charged };
  }
  return { kind: "refused", reason };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The system's code for the fault of a request, or the name of the error. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") {
    return cause.code;
  }
  return error.name;
}
