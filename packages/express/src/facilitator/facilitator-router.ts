import {
  CallerGoneError,
  CallerLimitedError,
  caip2Of,
  type Facilitator,
  FacilitatorError,
  type FacilitatorRequest,
  type HostedChannels,
  headerName,
  parseVerifyResponse,
  readFacilitatorRequest,
  type SettleResponse,
  StoppedError,
  type VerifyResponse,
  type VisitCounter,
  visitReasonOf,
} from "@coinslot/protocol";
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  Router,
} from "express";
import type { EventOptions } from "../events/event-options.ts";
import { createEventSender } from "../events/event-sender.ts";
import {
  createPaymentEvents,
  type PaymentEvents,
  type SettlementNews,
} from "../events/payment-events.ts";
import {
  createPlace,
  defaultLimits,
  leavePlace,
  processLoad,
  takePlace,
  verifiedShare,
} from "../load/load.ts";
import { refuseLoad } from "../load/overload-report.ts";
import * as refusals from "../refusals.ts";
import { emptyUnread } from "../replay/request-body.ts";
import { type ClientKey, limitKeyOf } from "../reservations/limit-key.ts";
import { isGone } from "../response/when-gone.ts";
import { writeError } from "../response/write-error.ts";
import {
  type CallerName,
  channelEndpoints,
  type ReadAsk,
  type ReadChannelAsk,
} from "./channel-endpoints.ts";
import { BodyDroppedError, receiveBody } from "./receive-body.ts";

/** Settings of `facilitatorRouter`. */
export interface FacilitatorRouterOptions {
  /** Largest request, in bytes. Default 64 KiB, and 256 KiB where channels are served. */
  maxRequestBytes?: number | undefined;
  /**
   * Most verifications and settlements that this process works on, with the paid requests of its
   * gates. Others get 503 with `Retry-After` and the reason `overloaded`. Half as many settlements
   * more are taken on: their sellers have run the handler. Default 1,000.
   */
  maxPaidRequests?: number | undefined;
  /**
   * Receives faults that the caller sees only as 500 or 503. By default, their message goes to
   * standard error.
   */
  onError?: ((error: unknown) => void) | undefined;
  /**
   * Sends lifecycle events to the URL in a request's `X-Event-Callback`; `{}` takes every default.
   * Without this option the header is ignored.
   */
  events?: EventOptions | undefined;
  /**
   * Names the client of a request, such as the owner of its key: forged signatures count against
   * it, and so do bodies until their end has come. The default is its address under the
   * application's `trust proxy`.
   */
  clientKey?: ClientKey | undefined;
  /**
   * Names the owner of a request's API key. Channels are served to callers that it names, for their
   * own receivers. Without it, none are served.
   */
  caller?: CallerName | undefined;
}

/** Writes a fault in the form of the endpoint's answer. */
type WriteFault = (reason: string, message: string) => object;

/**
 * The facilitator's side of HTTP: `POST /verify`, `POST /settle` and `GET /supported`, for sellers
 * of any implementation. It answers every path below its mount, and always in JSON.
 *
 * An invalid payment and a failed settlement are answers with 200. An unreadable request is 400 in
 * the same form. A fault of ours is 503 if it may pass, else 500, and says nothing about the payer.
 *
 * @example
 * ```ts
 * const facilitator = createFacilitator({ networks, ledger: "sqlite:./coinslot.db" });
 * const app = express();
 * // With `events`, lifecycle events go to the URL of a request's `X-Event-Callback`.
 * app.use(facilitatorRouter(facilitator, { events: {} }));
 * app.listen(4022);
 * ```
 */
export function facilitatorRouter(
  facilitator: Facilitator &
    Partial<SettlementNews & VisitCounter> & { hostedChannels?: HostedChannels | undefined },
  options: FacilitatorRouterOptions = {},
): Router {
  const { hostedChannels } = facilitator;
  const usualBytes = (hostedChannels === undefined ? 64 : 256) * 2 ** 10;
  const { maxRequestBytes = usualBytes, onError = writeError, clientKey, caller } = options;
  const eventsOf = readEventCall(clientKey);
  const { maxPaidRequests = defaultLimits.maxPaidRequests } = options;
  const limits = { ...defaultLimits, maxPaidRequests };
  const events = options.events && createEvents(options.events, facilitator);
  const receive = receiveBody({ maxRequestBytes, clientKey });
  const readBody = express.json({ limit: maxRequestBytes, strict: false });
  const router = Router();
  const channels = channelEndpoints(hostedChannels, { caller, events, eventsOf });

  post("/verify", { ...verification, readChannel: channels.verify, spare: 0 }, (call, read) => {
    // A facilitator in this process may return more than the wire format holds.
    const verify = async () =>
      parseVerifyResponse(
        await facilitator.verify(read.paymentPayload, read.received, {
          limitKey: limitKeyOf(call, clientKey),
          wait: { mayWait: () => true, isGone: () => call.res !== undefined && isGone(call.res) },
        }),
      );
    return events ? events.aroundVerify(eventsOf(call, read), verify) : verify();
  });
  const settling = { ...settlement, readChannel: channels.settle, spare: verifiedShare };
  post("/settle", settling, (call, read) => {
    const idempotencyKey = call.get(headerName.idempotencyKey);
    const settle = async () => {
      const { settledAt: _, ...settled } = await facilitator.settle(
        read.paymentPayload,
        read.received,
        { idempotencyKey, limitKey: limitKeyOf(call, clientKey) },
      );
      return settled;
    };
    return events ? events.aroundSettle(eventsOf(call, read), settle) : settle();
  });
  router
    .route("/supported")
    .get(async (_request, response) => {
      try {
        send(response, 200, await facilitator.getSupported());
      } catch (error) {
        sendFault(response, error, (reason, message) => ({ error: reason, message }));
      }
    })
    .all(onlyMethod("GET"));
  router.use((_request, response) => {
    send(response, 404, { error: "not_found", message: "Unknown endpoint" });
  });
  return router;

  function post(
    path: string,
    endpoint: Endpoint & { readChannel: ReadChannelAsk; spare: number },
    ask: (call: Request, read: FacilitatorRequest) => Promise<VerifyResponse | SettleResponse>,
  ): void {
    const { writeFault, faultReason, readChannel, spare } = endpoint;
    const readAsk = (body: unknown): ReadAsk => {
      const read = readFacilitatorRequest(body);
      if (!read.ok) return read;
      const { network } = read.request.received;
      return { ok: true, network, ask: (call) => ask(call, read.request) };
    };
    const refuse = (response: Response, refusal: refusals.Refusal, network?: string) => {
      const { error, message, retryAfterSeconds = 1 } = refusal;
      count(error, network);
      response.setHeader("Retry-After", retryAfterSeconds);
      send(response, 503, writeFault(error, message));
    };
    const unreadable: ErrorRequestHandler = (error, _request, response, _next) => {
      if (error instanceof BodyDroppedError) return refuse(response, refusals.bodyDropped);
      const isTooLarge = statusOf(error) === 413;
      const message = isTooLarge ? "The request is too large" : "The request is not JSON";
      send(response, isTooLarge ? 413 : 400, writeFault("invalid_payload", message));
    };
    router
      .route(path)
      .post(receive, readBody, async (request, response) => {
        const read = readChannel(request.body) ?? readAsk(request.body);
        if (!read.ok) {
          count(read.reason);
          return send(response, 400, writeFault(read.reason, read.message));
        }
        const { network } = read;
        const place = createPlace();
        if (!takePlace(processLoad, place, limits, spare)) {
          refuseLoad(processLoad, limits, onError);
          return refuse(response, refusals.overloaded, network);
        }
        try {
          const answer = await read.ask(request);
          const refusal = refusalIn(answer);
          if (refusal !== undefined) count(refusal, network);
          send(response, 200, answer);
        } catch (error) {
          if (error instanceof CallerGoneError) return;
          count(refusals.facilitatorFault(error).error, network);
          sendFault(response, error, (_reason, message) => writeFault(faultReason, message));
        } finally {
          leavePlace(processLoad, place);
        }
      })
      .all(onlyMethod("POST"));
    router.use(path, unreadable);
  }

  /** The token of a request is its caller's to invent. */
  function count(code: string, network?: string): void {
    const reason = visitReasonOf(code);
    facilitator.countVisit?.({ route: "", reason, network: network && caip2Of(network) });
  }

  function sendFault(response: Response, error: unknown, writeFault: WriteFault): void {
    const isStopped = error instanceof StoppedError;
    if (!isStopped && !(error instanceof CallerLimitedError)) onError(error);
    const isPassing = error instanceof FacilitatorError && error.isRetryable;
    if (isPassing) response.setHeader("Retry-After", error.retryAfterSeconds ?? 2);
    const fault = isPassing ? "Not possible at the moment" : "Not possible";
    const message = isStopped ? error.message : fault;
    send(response, isPassing ? 503 : 500, writeFault("unexpected_error", message));
  }
}

/** The receiver of a call's events, its client, and their subject. */
function readEventCall(clientKey: ClientKey | undefined) {
  return <Subject>(call: Request, request: Subject) => ({
    callback: call.get(headerName.eventCallback),
    limitKey: limitKeyOf(call, clientKey),
    request,
  });
}

function createEvents(options: EventOptions, news: Partial<SettlementNews>): PaymentEvents {
  const sender = createEventSender(options);
  return createPaymentEvents({ sender, news, signal: options.signal });
}

/** The reason of an answer that no payment follows; `undefined` of a good one. */
function refusalIn(answer: VerifyResponse | SettleResponse): string | undefined {
  if ("isValid" in answer) return answer.isValid ? undefined : (answer.invalidReason ?? "other");
  return answer.success ? undefined : (answer.errorReason ?? "other");
}

/** The form of an endpoint's faults, and their reason where it says no more. */
interface Endpoint {
  writeFault: WriteFault;
  faultReason: string;
}

const verification: Endpoint = { writeFault: verifyFault, faultReason: "unexpected_verify_error" };
const settlement: Endpoint = { writeFault: settleFault, faultReason: "unexpected_settle_error" };

function verifyFault(invalidReason: string, invalidMessage: string): object {
  return { isValid: false, invalidReason, invalidMessage };
}

function settleFault(errorReason: string, errorMessage: string): object {
  return { success: false, errorReason, errorMessage, transaction: "", network: "" };
}

function onlyMethod(method: string): RequestHandler {
  return (_request, response) => {
    response.setHeader("Allow", method);
    const message = `This endpoint needs ${method}`;
    send(response, 405, { error: "method_not_allowed", message });
  };
}

function send(response: Response, status: number, body: object): void {
  response.status(status).set("Cache-Control", "no-store").json(body);
  // At once: a pipelined answer may wait for as long as the connection's earlier ones do.
  emptyUnread(response.req);
}

function statusOf(error: unknown): unknown {
  return typeof error === "object" && error !== null ? Reflect.get(error, "status") : undefined;
}
