import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@coinslot/facilitator";
import { decodeReceipt, headerName } from "@coinslot/protocol";
import * as z from "zod";
import { findMppFaults, mppReceiptOf } from "./mpp-answer.ts";
import type { Purchase } from "./purchase.ts";

/** Outcome of one request of a buyer. */
export type Attempt =
  | { kind: "served"; transaction: string; content: string }
  /**
   * 402, or by MPP 409 where it has been charged: this payment buys nothing, or no longer.
   * `mayHaveRun`: before the refusal.
   */
  | { kind: "refused"; reason: string; mayHaveRun: boolean }
  /** A client's retry: its cause, and its time. */
  | { kind: "again"; why: string; afterMs: number; mayHaveRun: boolean };

/** A purchase's end for its buyer, and its costs. */
export interface Bought {
  purchase: Purchase;
  outcome: Exclude<Attempt, { kind: "again" }> | { kind: "gave up"; why: string };
  /** Requests that were sent. */
  attempts: number;
  /** Requests after which the handler may have run, and had to run again. */
  interruptions: number;
  /** Number of times that the content arrived. */
  deliveries: number;
  /** An observer with the payment and without the buyer's key got the content. */
  wasRobbed: boolean;
  /** Faults of the answers to a credential of MPP. */
  faults: readonly string[];
}

/** An answer as it came. */
interface Answer {
  response: Response;
  body: string;
}

const errorSchema = z.object({ error: z.string(), transaction: z.string().default("") });
/** Errors of 409 that end a purchase by MPP: its money has moved. */
const endsByMpp: ReadonlySet<string> = new Set(["payment_used_up", "answer_not_kept"]);
/** Time limit of a buyer for an answer. */
const patienceMs = 20_000;

/**
 * Buys as a real client does. It sends the same payment again until there is a meaningful answer,
 * at any living process.
 */
export async function buy(options: {
  purchase: Purchase;
  /** Resolves to the URL of a living seller, once there is one. */
  sellerUrl: () => Promise<string>;
  /** Called with the first request under way. */
  onBegun: () => void;
  /** Aborts when no answer can come any more. */
  signal: AbortSignal;
  /** Records requests and answers. */
  log?: Logger | undefined;
}): Promise<Bought> {
  const { purchase, sellerUrl, onBegun, signal, log } = options;
  let attempts = 0;
  let interruptions = 0;
  let deliveries = 0;
  const faults: string[] = [];

  async function attempt(hangUpAfterMs?: number): Promise<Attempt> {
    attempts += 1;
    const number = attempts;
    const url = await sellerUrl();
    const name = { purchase: purchase.number, request: number, url };
    log?.info(name, "a buyer asks");
    const made = await request({ url, purchase, hangUpAfterMs, faults });
    log?.info({ ...name, answer: made }, "a buyer has its answer");
    if (made.kind === "served") deliveries += 1;
    if (made.kind === "again" && made.mayHaveRun) interruptions += 1;
    return made;
  }

  function bought(outcome: Bought["outcome"], wasRobbed = false): Bought {
    return { purchase, outcome, attempts, interruptions, deliveries, wasRobbed, faults };
  }

  const first = attempt(purchase.hangsUpAfterMs);
  const twin = purchase.isTwin ? attempt() : undefined;
  onBegun();
  const [one, other] = await Promise.all([first, twin]);
  let last = better(one, other);
  // The handler ran in vain for it: its settlement failed, or another process took the payment.
  const passedOver = last === one ? other : one;
  if (passedOver?.kind === "refused" && passedOver.mayHaveRun) interruptions += 1;
  for (;;) {
    if (last.kind === "served") return bought(last, await isRobbed(purchase, await sellerUrl()));
    if (last.kind === "refused") return bought(last);
    if (signal.aborted) return bought({ kind: "gave up", why: last.why });
    await sleep(last.afterMs);
    last = await attempt();
  }
}

/** Of two answers to one payment, the one that counts for a client. */
function better(one: Attempt, other: Attempt | undefined): Attempt {
  if (other === undefined || one.kind === "served") return one;
  if (other.kind === "served" || one.kind === "refused") return other;
  return one;
}

async function request(options: {
  url: string;
  purchase: Purchase;
  hangUpAfterMs?: number | undefined;
  /** Takes the faults of an answer by MPP. */
  faults: string[];
}): Promise<Attempt> {
  const { url, purchase, hangUpAfterMs = patienceMs, faults } = options;
  let response: Response;
  let body: string;
  try {
    response = await fetch(`${url}${purchase.path}`, {
      headers: purchase.headers,
      signal: AbortSignal.timeout(hangUpAfterMs),
    });
    body = await response.text();
  } catch (error) {
    const why = faultOf(error);
    // Without a connection no seller has the request.
    const mayHaveRun = why !== "ECONNREFUSED";
    return { kind: "again", why: `no answer (${why})`, afterMs: 200, mayHaveRun };
  }
  if (purchase.challenge === undefined) return readX402({ response, body }, purchase);
  faults.push(...findMppFaults(response, purchase.challenge));
  return readMpp({ response, body }, purchase);
}

function readX402({ response, body }: Answer, purchase: Purchase): Attempt {
  const receipt =
    response.headers.get(headerName.paymentResponse) ??
    response.headers.get(headerName.paymentResponseV1);
  const settlement = receipt === null ? undefined : decodeReceipt(receipt);
  if (response.status === 200) {
    return { kind: "served", transaction: settlement?.transaction ?? "", content: body };
  }
  if (response.status !== 402) return retry({ response, body }, purchase);
  // Only a payment that was sent for settlement has a receipt, after its handler.
  const mayHaveRun = settlement?.success === false && !isUpfront(purchase);
  return { kind: "refused", reason: errorOf(body).error, mayHaveRun };
}

/**
 * By MPP a refusal after the handler has no receipt. The sellers tell of those whose handler ran.
 */
function readMpp({ response, body }: Answer, purchase: Purchase): Attempt {
  const { error } = errorOf(body);
  if (response.status === 200) {
    const transaction = mppReceiptOf(response.headers)?.reference ?? "";
    return { kind: "served", transaction, content: body };
  }
  const isEnd = response.status === 402 || (response.status === 409 && endsByMpp.has(error));
  return isEnd
    ? { kind: "refused", reason: error, mayHaveRun: false }
    : retry({ response, body }, purchase);
}

function retry({ response, body }: Answer, purchase: Purchase): Attempt {
  const { error, transaction } = errorOf(body);
  return {
    kind: "again",
    why: `${response.status} ${error}`,
    afterMs: 1000 * Number(response.headers.get("retry-after") ?? 0.2),
    mayHaveRun: mayRunAgain({ error, isSent: transaction !== "" }, purchase),
  };
}

/**
 * Returns whether the handler may have run for this answer, and has to run once more for the next.
 */
function mayRunAgain(
  { error, isSent }: { error: string; isSent: boolean },
  purchase: Purchase,
): boolean {
  switch (error) {
    // Another request runs, or none did.
    case "payment_in_use":
    case "not_ready":
    case "facilitator_unavailable":
    case "payer_limited":
      return false;
    case "settlement_pending":
      // With a key the answer is kept before anything is sent to the chain.
      return !(isSent && purchase.hasKey) || isUpfront(purchase);
    default:
      return true;
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

function isUpfront({ flow }: Purchase): boolean {
  return flow === "upfront";
}

function errorOf(body: string): z.infer<typeof errorSchema> {
  try {
    return errorSchema.parse(JSON.parse(body));
  } catch {
    return { error: body.slice(0, 80), transaction: "" };
  }
}

/**
 * A payment on the chain is public. Without the buyer's key, or without the challenge behind it, it
 * must return nothing.
 */
async function isRobbed(purchase: Purchase, url: string): Promise<boolean> {
  const { hasKey, path, number, challenge } = purchase;
  if (number % 10 !== 0 || (!hasKey && challenge === undefined)) return false;
  const { [headerName.idempotencyKey]: _, ...seen } = purchase.headers;
  const headers = challenge === undefined ? seen : purchase.strangerHeaders;
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const response = await fetch(`${url}${path}`, { headers, signal });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    // The process died: nothing was given.
    return false;
  }
}
