import type { ServerResponse } from "node:http";
import {
  type Authorization,
  decodePaymentV1,
  decodePaymentV2,
  encodePaymentRequired,
  encodeReceipt,
  headerName,
  type PaymentPayload,
  type PaymentRequirements,
  parseAuthorization,
  plasma,
  plasmaUsdt0,
  toPaymentRequirementsV1,
} from "@coinslot/protocol";
import { type Listening, listen, type ReceivedRequest } from "./listen.ts";

/** A request that came with a payment. */
export interface PaidRequest {
  request: ReceivedRequest;
  payload: PaymentPayload;
  authorization: Authorization;
  idempotencyKey: string | undefined;
}

/** A seller whose every step a test may replace. */
export interface Seller extends Listening {
  /** All requests without a payment, and all with one. */
  unpaid: ReceivedRequest[];
  paid: PaidRequest[];
}

export const payTo = "0x00000000000000000000000000000000000beef1";

/** 0.001 USDT0 on Plasma by default. */
export function requirements(change: Partial<PaymentRequirements> = {}): PaymentRequirements {
  return {
    scheme: "exact",
    network: plasma,
    amount: "1000",
    asset: plasmaUsdt0.address,
    payTo,
    maxTimeoutSeconds: 300,
    extra: { name: "USDT0", version: "1", decimals: 6 },
    ...change,
  };
}

/** Starts a seller that offers in the given version, and takes every payment for good. */
export async function startSeller(
  options: {
    version?: 1 | 2;
    accepts?: (url: string) => PaymentRequirements[];
    /** The resource that the offer names. */
    resource?: (url: string) => string;
    /** Adds to the offer of version 2, or overrides parts of it. */
    offer?: Record<string, unknown>;
    /** Returns whether it answers the unpaid request itself. */
    onUnpaid?: (request: ReceivedRequest, response: ServerResponse) => boolean;
    /** Resolves to whether it answers the paid request itself. */
    onPaid?: (
      paid: PaidRequest,
      response: ServerResponse,
      count: number,
    ) => boolean | Promise<boolean>;
  } = {},
): Promise<Seller> {
  const { version = 2, accepts = () => [requirements()] } = options;
  const unpaid: ReceivedRequest[] = [];
  const paid: PaidRequest[] = [];

  const listening = await listen(async (request, response) => {
    const url = `http://${request.headers.host}${request.url}`;
    const payment = readPaid(request);
    if (payment === undefined) {
      unpaid.push(request);
      if (options.onUnpaid?.(request, response)) return;
      answer402(response, version, {
        resource: options.resource?.(url) ?? url,
        accepts: accepts(url),
        offer: options.offer ?? {},
      });
      return;
    }
    paid.push(payment);
    if (await options.onPaid?.(payment, response, paid.length)) return;
    sell(response, payment);
  });
  return { ...listening, unpaid, paid };
}

/** Answers 402 in one version of the protocol. */
export function answer402(
  response: ServerResponse,
  version: 1 | 2,
  {
    resource,
    accepts,
    offer = {},
  }: { resource: string; accepts: PaymentRequirements[]; offer?: Record<string, unknown> },
): void {
  if (version === 2) {
    const message = { x402Version: 2 as const, resource: { url: resource }, accepts, ...offer };
    response.writeHead(402, { [headerName.paymentRequired]: encodePaymentRequired(message) });
    response.end("{}");
    return;
  }
  const entries = accepts.map((entry) =>
    toPaymentRequirementsV1({ requirements: entry, resource: { url: resource } }),
  );
  response.writeHead(402, { "Content-Type": "application/json" });
  const body = { x402Version: 1, error: "X-PAYMENT header is required", accepts: entries };
  response.end(JSON.stringify({ ...body, ...offer }));
}

/** Answers 402 to a payment, with the seller's reason. */
export function reject(response: ServerResponse, { payload }: PaidRequest, reason: string): void {
  const receipt = { success: false, errorReason: reason, transaction: "", network: plasma };
  const name =
    payload.x402Version === 1 ? headerName.paymentResponseV1 : headerName.paymentResponse;
  response.writeHead(402, { [name]: encodeReceipt(receipt, payload.x402Version) });
  response.end(JSON.stringify({ x402Version: 1, error: reason, accepts: [] }));
}

/** Answers as a seller does whose payment is settled. */
export function sell(
  response: ServerResponse,
  { payload, authorization }: PaidRequest,
  transaction = `0x${"ab".repeat(32)}`,
): void {
  const receipt = { success: true, transaction, network: plasma, payer: authorization.from };
  const name =
    payload.x402Version === 1 ? headerName.paymentResponseV1 : headerName.paymentResponse;
  response.writeHead(200, {
    "Content-Type": "application/json",
    [name]: encodeReceipt(receipt, payload.x402Version),
  });
  response.end(JSON.stringify({ forecast: "sun" }));
}

function readPaid(request: ReceivedRequest): PaidRequest | undefined {
  const v1 = request.headers["x-payment"];
  const v2 = request.headers["payment-signature"];
  const payload =
    typeof v1 === "string"
      ? decodePaymentV1(v1)
      : typeof v2 === "string"
        ? decodePaymentV2(v2)
        : undefined;
  if (payload === undefined) return undefined;
  const key = request.headers["idempotency-key"];
  return {
    request,
    payload,
    authorization: parseAuthorization(payload.payload.authorization),
    idempotencyKey: typeof key === "string" ? key : undefined,
  };
}
