import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { parseShape } from "../x402/base64-json.ts";
import { DecodeError } from "../x402/decode-error.ts";
import { freezeMessage, isFrozenMessage, onceForFrozen } from "../x402/frozen-message.ts";
import {
  isDecodedPayment,
  type PaymentPayload,
  paymentPayloadSchema,
} from "../x402/payment-payload.ts";
import {
  fromPaymentRequirementsV1,
  type PaymentRequirements,
  type PaymentRequirementsV1,
  paymentRequirementsSchema,
  paymentRequirementsV1Schema,
} from "../x402/payment-requirements.ts";
import type { InvalidReason } from "../x402/reason.ts";

/** The body of `POST /verify` and `POST /settle`. */
export interface FacilitatorRequest {
  paymentPayload: PaymentPayload;
  paymentRequirements: PaymentRequirements;
  /** The same requirements as received: version 1 has more members, which others read. */
  received: PaymentRequirements | PaymentRequirementsV1;
}

/** Either the request, or the reason to answer with. */
export type ReadFacilitatorRequest =
  | { ok: true; request: FacilitatorRequest }
  | { ok: false; reason: InvalidReason; message: string };

const bodySchema = z.object({
  x402Version: z.unknown().optional(),
  paymentPayload: z.unknown().optional(),
  paymentRequirements: z.unknown().optional(),
});

/**
 * Reads the parsed JSON body of `POST /verify` or `POST /settle`, in either version. Never throws.
 */
export function readFacilitatorRequest(body: unknown): ReadFacilitatorRequest {
  return guard("invalid_payload", () => {
    const request = parseShape({ noun: "The request", value: body, schema: bodySchema });
    const { x402Version, paymentPayload, paymentRequirements } = request;
    if (x402Version === undefined || !isRecord(paymentPayload)) {
      return readFacilitatorArguments(paymentPayload, paymentRequirements);
    }
    const { x402Version: ownVersion = x402Version } = paymentPayload;
    if (ownVersion !== x402Version) return wrongVersion;
    return readFacilitatorArguments({ ...paymentPayload, x402Version }, paymentRequirements);
  });
}

/**
 * Reads the two arguments of `verify` and `settle` from a caller in the same process. They have the
 * form of either version, perhaps by another implementation's middleware. Never throws.
 *
 * A paid request passes here three times. Two immutable messages (`freezeMessage`) are read once. A
 * value that has its shape already is passed on as it is.
 */
export const readFacilitatorArguments: (
  paymentPayload: unknown,
  paymentRequirements: unknown,
) => ReadFacilitatorRequest = onceForFrozen(readArguments);

function readArguments(
  paymentPayload: unknown,
  paymentRequirements: unknown,
): ReadFacilitatorRequest {
  return guard("invalid_payload", () => {
    const noun = "The member paymentPayload";
    if (isRecord(paymentPayload) && !isKnownVersion(paymentPayload.x402Version)) {
      return wrongVersion;
    }
    const payload = isDecodedPayment(paymentPayload)
      ? paymentPayload
      : parseShape({ noun, value: paymentPayload, schema: paymentPayloadSchema });
    return guard("invalid_payment_requirements", () => ({
      ok: true,
      request: {
        paymentPayload: payload,
        ...readRequirements(paymentRequirements),
      },
    }));
  });
}

const wrongVersion: ReadFacilitatorRequest = {
  ok: false,
  reason: "invalid_x402_version",
  message: "x402Version must be 1 or 2, and the same in the request and in its payment payload",
};

function isKnownVersion(version: unknown): boolean {
  return version === 1 || version === 2;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type ReadRequirements = Omit<FacilitatorRequest, "paymentPayload">;

/** Results for immutable requirements: those of an offer that is made once. */
const requirementsRead = new WeakMap<object, ReadRequirements>();

function readRequirements(value: unknown): ReadRequirements {
  if (!isFrozenMessage(value)) return parseRequirements(value);
  const known = requirementsRead.get(value);
  if (known !== undefined) return known;
  const { paymentRequirements, received } = parseRequirements(value);
  const read = isUnchanged(value, paymentRequirements)
    ? { paymentRequirements: value, received: value }
    : { paymentRequirements: freezeMessage(paymentRequirements), received };
  requirementsRead.set(value, read);
  return read;
}

function isUnchanged<T>(value: unknown, parsed: T): value is T {
  return isDeepStrictEqual(value, parsed);
}

function parseRequirements(value: unknown): ReadRequirements {
  const noun = "The member paymentRequirements";
  if (!isRecord(value) || !("maxAmountRequired" in value)) {
    const paymentRequirements = parseShape({ noun, value, schema: paymentRequirementsSchema });
    return { paymentRequirements, received: paymentRequirements };
  }
  const received = parseShape({ noun, value, schema: paymentRequirementsV1Schema });
  const paymentRequirements = fromPaymentRequirementsV1(received);
  if (paymentRequirements === undefined) throw new DecodeError(noun, "wrong_shape", "network");
  return { paymentRequirements, received };
}

function guard(reason: InvalidReason, read: () => ReadFacilitatorRequest): ReadFacilitatorRequest {
  try {
    return read();
  } catch (error) {
    if (error instanceof DecodeError) return { ok: false, reason, message: error.message };
    throw error;
  }
}
