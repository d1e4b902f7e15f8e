import type { IncomingMessage } from "node:http";
import {
  DecodeError,
  decodePaymentV1,
  decodePaymentV2,
  headerName,
  type PaymentPayload,
} from "@coinslot/protocol";

/** The payment that a request brings. */
export type ReadPaymentHeader =
  | { state: "absent" }
  | { state: "malformed"; message: string }
  | { state: "read"; payload: PaymentPayload };

const v1 = headerName.payment.toLowerCase();
const v2 = headerName.paymentSignature.toLowerCase();

/** Reads the payment of a request, of either version. A request brings one, once. */
export function readPaymentHeader(request: IncomingMessage): ReadPaymentHeader {
  const ofV1 = request.headers[v1];
  const ofV2 = request.headers[v2];
  const value = ofV2 ?? ofV1;
  if (value === undefined) return { state: "absent" };
  const isOne = ofV1 === undefined || ofV2 === undefined;
  if (!isOne || typeof value !== "string" || isRepeated(request, value)) {
    return { state: "malformed", message: "A request brings one payment header, once" };
  }
  try {
    const payload = ofV2 === undefined ? decodePaymentV1(value) : decodePaymentV2(value);
    return { state: "read", payload };
  } catch (error) {
    if (error instanceof DecodeError) return { state: "malformed", message: error.message };
    throw error;
  }
}

/** Node joins the values of a header that is sent twice with commas, of which one has none. */
function isRepeated(request: IncomingMessage, value: string): boolean {
  if (!value.includes(",")) return false;
  return [v1, v2].some((name) => (request.headersDistinct[name]?.length ?? 0) > 1);
}
