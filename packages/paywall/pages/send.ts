import type { PageData } from "../src/page-data.ts";
import { headerOf, type KeptPayment } from "./kept-payment.ts";

/** The seller's word on a payment that was sent. */
export type Attempt =
  /** `transaction`: of its receipt, if it has one. `opens`: a navigation gets the answer. */
  | { kind: "answered"; response: Response; transaction: string | undefined; opens: boolean }
  /** A redirect, which only a navigation can follow. */
  | { kind: "redirected" }
  /** Money has moved and no answer comes. */
  | { kind: "charged"; transaction: string }
  | { kind: "refunded" }
  /** The seller says that it has moved nothing, and may still move it. */
  | { kind: "refused"; reason: string }
  /** Nothing is decided: ask again, with the same payment. */
  | { kind: "undecided"; waitMs: number; isAnswered: boolean }
  /** Another error. Without the seller's word, it may be a proxy's, and the request still run. */
  | { kind: "failed"; status: number; isUncharged: boolean };

const defaultWaitMs = 2_000;
const alreadyUsed = "nonce_already_used";

/** Repeats the request of this page with the payment. */
export async function sendPayment(data: PageData, payment: KeptPayment): Promise<Attempt> {
  const { method, form, accept } = data;
  const headers = new Headers({
    Accept: accept,
    "PAYMENT-SIGNATURE": headerOf(payment),
    "Idempotency-Key": payment.key,
    "Coinslot-Redeem": "1",
    "Coinslot-Redeem-Path": location.pathname,
  });
  const init: RequestInit = { method, headers, cache: "no-store", redirect: "manual" };
  if (form.state === "kept") {
    headers.set("Content-Type", "application/x-www-form-urlencoded");
    init.body = form.body;
  }
  let response: Response;
  try {
    response = await fetch(location.href, init);
  } catch {
    return { kind: "undecided", waitMs: defaultWaitMs, isAnswered: false };
  }
  if (response.type === "opaqueredirect") return { kind: "redirected" };
  return readAttempt(response);
}

async function readAttempt(response: Response): Promise<Attempt> {
  const { status, ok, headers } = response;
  const receipt = readReceipt(headers.get("PAYMENT-RESPONSE"));
  const opens = headers.has("Coinslot-Redeem");
  const transaction = receipt?.success === true ? hashOf(receipt.transaction) : undefined;
  if (ok) return { kind: "answered", response, transaction, opens };
  const { error, charged, transaction: moved } = await readRefusal(response);
  const reason = typeof error === "string" ? error.slice(0, 200) : String(status);
  if (reason === "payment_refunded") return { kind: "refunded" };
  // Its nonce is used: by an earlier attempt, whose answer is not kept any more.
  const isUsed = charged === true || transaction !== undefined || reason.includes(alreadyUsed);
  if (isUsed) return { kind: "charged", transaction: transaction ?? hashOf(moved) };
  if (status === 402) return { kind: "refused", reason };
  if (status === 409 || status === 429 || status === 502 || status === 503) {
    const seconds = Number(headers.get("Retry-After"));
    const waitMs = seconds > 0 ? seconds * 1000 : defaultWaitMs;
    return { kind: "undecided", waitMs, isAnswered: true };
  }
  return { kind: "failed", status, isUncharged: charged === false };
}

function readReceipt(header: string | null): Record<string, unknown> | undefined {
  try {
    return header === null ? undefined : Object(JSON.parse(atob(header)));
  } catch {
    return undefined;
  }
}

async function readRefusal(response: Response): Promise<Record<string, unknown>> {
  try {
    return Object(await response.json());
  } catch {
    return {};
  }
}

function hashOf(value: unknown): string {
  return typeof value === "string" && /^0x[0-9a-f]{64}$/i.test(value) ? value : "";
}
