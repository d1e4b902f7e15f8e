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

/** Whether a request brings a payment, well formed or not. */
function hasPaymentHeader(request: IncomingMessage): boolean {
  return request.headers[v1] !== undefined || request.headers[v2] !== undefined;
}

/** Reads the payment of a request, of either version. A request brings one, once. */
export function readPaymentHeader(request: IncomingMessage): ReadPaymentHeader {
  if (!hasPaymentHeader(request)) return { state: "absent" };
  const ofV1 = request.headersDistinct[v1] ?? [];
  const ofV2 = request.headersDistinct[v2] ?? [];
  const [value, ...others] = [...ofV1, ...ofV2];
  if (value === undefined) return { state: "absent" };
  if (others.length > 0) {
    return { state: "malformed", message: "A request brings one payment header, once" };
  }
  try {
    const payload = ofV1.length > 0 ? decodePaymentV1(value) : decodePaymentV2(value);
    return { state: "read", payload };
  } catch (error) {
    if (error instanceof DecodeError) return { state: "malformed", message: error.message };
    throw error;
  }
}
