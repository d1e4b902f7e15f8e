import { headerName } from "@coinslot/protocol";
import { PaymentError } from "../payment-error.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { wireOf } from "../wires/registry.ts";
import { dropBody } from "./drop-body.ts";
import { OutcomeUnclearError } from "./outcome-unclear-error.ts";
import type { PaymentOutcome } from "./payment-outcome.ts";
import { type Answer, readAnswer } from "./read-answer.ts";
import { type RepeatableRequest, toInit } from "./repeatable-request.ts";
import { readRetryAfter } from "./retry-after.ts";

/** Retry limits of one payment. */
export interface Persistence {
  /** Maximum number of times the same payment is sent. */
  maxAttempts: number;
  /** Timeout of one attempt, up to its headers and the part of its body that explains a refusal. */
  attemptTimeoutMs: number;
  /** The longest pause between two attempts; a seller's longer `Retry-After` ends the retries. */
  maxWaitMs: number;
}

/** The result of one attempt. */
type Attempt =
  | { kind: "answered"; response: Response; answer: Answer }
  /** `wasSent` is false only if no connection came about. */
  | { kind: "failed"; cause: unknown; wasSent: boolean };

const firstPauseMs = 500;
/**
 * Sends a payment until the seller has decided: the same one each time, never another. Redirects
 * are not followed, so the payment goes to its own URL alone.
 *
 * @throws OutcomeUnclearError when it was sent and its outcome is unknown. That includes a
 * rejection after such an attempt, and a caller that aborted meanwhile (the reason is its `cause`).
 * @throws PaymentError `unreachable` when no attempt came as far as a connection.
 */
export async function sendPayment(options: {
  payment: SignedPayment;
  request: RepeatableRequest;
  /** True if the payment was sent before this call. */
  wasSent: boolean;
  fetch: typeof fetch;
  persistence: Persistence;
  now: () => number;
  wait: (ms: number, signal?: AbortSignal) => Promise<void>;
  onSend: (attempt: number) => void;
  /**
   * Returns a rejection after an attempt of unknown outcome, with its answer. For payments whose
   * rejection says whether they were charged. Default `false`: it throws.
   */
  returnsRejections?: boolean;
}): Promise<{ response: Response; outcome: PaymentOutcome; isUncertain: boolean }> {
  const { payment, request, persistence, now, wait, onSend } = options;
  const deadline = payment.terms.validBefore * 1000;
  let { wasSent } = options;

  for (let count = 1; ; count += 1) {
    onSend(count);
    const attempt = await tryOnce(options);
    if (attempt.kind === "answered" && attempt.answer.kind === "final") {
      const { state, receipt, reason } = attempt.answer;
      const protocol = wireOf(payment).name;
      // A seller that has settled an earlier attempt, without recognising it, rejects this one as
      // used. A plain 402 would then invite the caller to pay twice.
      if (state === "rejected" && wasSent && !options.returnsRejections) {
        dropBody(attempt.response);
        throw giveUp({ payment, request, attempt, wasSent, reason });
      }
      const outcome = { state, protocol, payment, receipt, reason };
      return { response: attempt.response, outcome, isUncertain: wasSent };
    }
    wasSent ||= attempt.kind === "answered" || attempt.wasSent;
    if (attempt.kind === "answered") dropBody(attempt.response);

    const asked =
      attempt.kind === "answered" ? readRetryAfter(attempt.response.headers, now()) : undefined;
    const pause = asked ?? Math.min(firstPauseMs * 2 ** (count - 1), persistence.maxWaitMs);
    const isLast =
      count >= persistence.maxAttempts ||
      pause > persistence.maxWaitMs ||
      now() + pause >= deadline;
    const end = { payment, request, attempt, wasSent, askedMs: asked };
    if (isLast || request.signal?.aborted) throw giveUp(end);
    try {
      await wait(pause, request.signal);
    } catch {
      throw giveUp(end);
    }
  }
}

async function tryOnce(options: {
  payment: SignedPayment;
  request: RepeatableRequest;
  fetch: typeof fetch;
  persistence: Persistence;
}): Promise<Attempt> {
  const { payment, request, persistence } = options;
  const headers = new Headers(request.headers);
  headers.set(payment.header.name, payment.header.value);
  headers.set(headerName.idempotencyKey, payment.idempotencyKey);

  // The timeout covers only the decision on the payment; the paid body may stream without a limit.
  const tooSlow = new AbortController();
  const timer = setTimeout(
    () => tooSlow.abort(new DOMException("The seller did not answer in time", "TimeoutError")),
    persistence.attemptTimeoutMs,
  );
  const signals = request.signal ? [request.signal, tooSlow.signal] : [tooSlow.signal];
  const init: RequestInit = {
    ...toInit({ ...request, headers }),
    redirect: "manual",
    signal: AbortSignal.any(signals),
  };
  try {
    const response = await options.fetch(payment.sendTo, init);
    return { kind: "answered", response, answer: await readAnswer(response, payment) };
  } catch (cause) {
    // The reason of an abort is the caller's, and may describe another connection.
    const wasSent = request.signal?.aborted === true || !isNotConnected(cause);
    return { kind: "failed", cause, wasSent };
  } finally {
    clearTimeout(timer);
  }
}

function giveUp(options: {
  payment: SignedPayment;
  request: RepeatableRequest;
  /** The last one. */
  attempt: Attempt;
  wasSent: boolean;
  /** The seller's `Retry-After` delay. */
  askedMs?: number | undefined;
  reason?: string | undefined;
}): PaymentError {
  const { payment, request, attempt, wasSent, askedMs, reason } = options;
  const { host } = new URL(payment.sendTo);
  const failure = attempt.kind === "failed" ? attempt.cause : undefined;
  const cause: unknown = request.signal?.aborted ? request.signal.reason : failure;
  if (!wasSent) {
    const message = `${host} could not be connected to; the payment was not sent`;
    return new PaymentError("unreachable", message, { cause });
  }
  const answered = attempt.kind === "answered" ? attempt : undefined;
  const last = answered ? `it answered ${answered.response.status}` : "no answer arrived";
  return new OutcomeUnclearError({
    message: `A payment was sent to ${host} and its outcome is unknown: ${last}`,
    payment,
    status: answered?.response.status,
    retryAfterSeconds: askedMs === undefined ? undefined : Math.ceil(askedMs / 1000),
    transaction: answered?.answer.receipt?.transaction || undefined,
    reason,
    cause,
  });
}

// Any other error may have come after the request reached the seller.
function isNotConnected(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isNotConnected);
  if (!(error instanceof Error)) return false;
  if ("syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo")) {
    return true;
  }
  if ("code" in error && error.code === "UND_ERR_CONNECT_TIMEOUT") return true;
  return isNotConnected(error.cause);
}
