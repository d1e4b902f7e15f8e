import {
  type Facilitator,
  FacilitatorError,
  headerName,
  isSupported,
  parseSettleResponse,
  parseVerifyResponse,
  type ResourceInfo,
  readFacilitatorArguments,
  settleResponseSchema,
  verifyResponseSchema,
} from "@coinslot/protocol";
import type { MaybePromise } from "../maybe-promise.ts";
import { exchangeJson, type JsonAnswer } from "./exchange-json.ts";
import { toForeignRequest } from "./foreign-request.ts";
import { settleDeadlineMs } from "./settle-deadline.ts";

/** Address and access of a hosted facilitator. */
export interface FacilitatorClientOptions {
  /** Base URL, in front of `/verify`, `/settle` and `/supported`. */
  url: string;
  /** Sent with every request, such as `Authorization`. A function is called before each. */
  headers?: (Record<string, string> | (() => MaybePromise<Record<string, string>>)) | undefined;
  /** Receiver of lifecycle events of verifications and settlements (`X-Event-Callback`). */
  eventCallback?: string | undefined;
  /**
   * Deadline of one request, its answer included. Default 30,000; for a settlement 35,000, and more
   * on a known chain with slow blocks.
   */
  timeoutMs?: number | undefined;
  /** Default: the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** One request beside its path and body. */
interface Exchange {
  extraHeaders?: Record<string, string>;
  /** In milliseconds, where none is configured. */
  deadlineMs?: number;
}

/**
 * Creates the client of a facilitator elsewhere, over HTTP. It fails closed: an answer of any other
 * form than the protocol's throws a `FacilitatorError`. Redirects are not followed.
 *
 * @example
 * ```ts
 * const facilitator = createFacilitatorClient({
 *   url: "https://facilitator.example",
 *   headers: { authorization: `Bearer ${process.env.FACILITATOR_KEY}` },
 * });
 * const gate = paymentMiddleware(routes, facilitator);
 * ```
 */
export function createFacilitatorClient(options: FacilitatorClientOptions): Facilitator {
  const { url, headers = {}, timeoutMs, fetch: exchange = fetch } = options;
  const base = readBase(url);
  const callback = readCallback(options.eventCallback);

  async function ask(
    path: "verify" | "settle" | "supported",
    body?: unknown,
    { extraHeaders = {}, deadlineMs = 30_000 }: Exchange = {},
  ): Promise<JsonAnswer> {
    const own = typeof headers === "function" ? await headers() : headers;
    return exchangeJson({
      url: `${base}/${path}`,
      method: body === undefined ? "GET" : "POST",
      headers: { ...own, ...(body === undefined ? {} : callback), ...extraHeaders },
      body,
      timeoutMs: timeoutMs ?? deadlineMs,
      fetch: exchange,
    });
  }

  function write(paymentPayload: unknown, paymentRequirements: unknown, resource?: ResourceInfo) {
    const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
    if (!read.ok) return read;
    const request = toForeignRequest({ request: read.request, resource });
    const { x402Version } = request.paymentPayload;
    const { network } = read.request.paymentRequirements;
    return { ok: true as const, body: { x402Version, ...request }, network };
  }

  return {
    async verify(paymentPayload, paymentRequirements, { resource } = {}) {
      const written = write(paymentPayload, paymentRequirements, resource);
      if (!written.ok) return { isValid: false, invalidReason: written.reason };
      const { status, json } = await ask("verify", written.body);
      const verified = verifyResponseSchema.safeParse(json);
      if (!verified.success || (status !== 200 && verified.data.isValid)) throw unreadable();
      return parseVerifyResponse(verified.data);
    },

    async settle(paymentPayload, paymentRequirements, { idempotencyKey, resource } = {}) {
      const written = write(paymentPayload, paymentRequirements, resource);
      if (!written.ok) throw new FacilitatorError(written.message, { kind: "bad_response" });
      const { status, json } = await ask("settle", written.body, {
        extraHeaders: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey },
        deadlineMs: settleDeadlineMs(written.network),
      });
      const settled = settleResponseSchema.safeParse(json);
      if (!settled.success || (status !== 200 && settled.data.success)) throw unreadable();
      return parseSettleResponse(settled.data);
    },

    async getSupported() {
      const { status, json } = await ask("supported");
      if (status !== 200 || !isSupported(json)) throw unreadable();
      return json;
    },
  };
}

function readBase(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "https:" && parsed?.protocol !== "http:") {
    throw new TypeError("The url of a facilitator begins with https:// or http://");
  }
  return url.replace(/\/+$/, "");
}

function readCallback(eventCallback: string | undefined): Record<string, string> {
  if (eventCallback === undefined) return {};
  if (!URL.canParse(eventCallback)) throw new TypeError("The eventCallback is not a URL");
  return { [headerName.eventCallback]: new URL(eventCallback).href };
}

function unreadable(): FacilitatorError {
  return new FacilitatorError("The facilitator's answer could not be read", {
    kind: "bad_response",
  });
}
