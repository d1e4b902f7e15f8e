import { z } from "zod";
import { decodeBase64Json, encodeBase64Json, parseShape } from "./base64-json.ts";
import {
  fromPaymentRequirementsV1,
  type PaymentRequirements,
  paymentRequirementsSchema,
  paymentRequirementsV1Schema,
} from "./payment-requirements.ts";
import { type ResourceInfo, resourceInfoSchema } from "./resource-info.ts";

/** The body of a 402 answer in version 1. */
export const paymentRequiredV1Schema = z.object({
  x402Version: z.literal(1),
  error: z.string().max(1024).optional(),
  accepts: z.array(z.unknown()).max(64),
});

/** The body of a 402 answer in version 1, as we write it. */
export interface PaymentRequiredV1 {
  x402Version: 1;
  error: string;
  accepts: z.infer<typeof paymentRequirementsV1Schema>[];
}

/** The `PAYMENT-REQUIRED` header of a 402 answer in version 2. */
export const paymentRequiredSchema = z.object({
  x402Version: z.literal(2),
  error: z.string().max(1024).optional(),
  resource: resourceInfoSchema.optional(),
  accepts: z.array(z.unknown()).max(64),
  extensions: z.record(z.string().max(128), z.unknown()).optional(),
});

/** The `PAYMENT-REQUIRED` header of a 402 answer in version 2, as we write it. */
export interface PaymentRequired {
  x402Version: 2;
  error?: string;
  resource: ResourceInfo;
  accepts: PaymentRequirements[];
  extensions?: Record<string, unknown>;
}

/** What a 402 answer offers, in whichever version it came. */
export interface Offer {
  x402Version: 1 | 2;
  error?: string | undefined;
  resource?: ResourceInfo | undefined;
  /** The ways to pay that we can read; entries in other schemes or on unknown networks are left out. */
  accepts: OfferedRequirements[];
  extensions?: Record<string, unknown> | undefined;
}

/** One way to pay, as we compute with it and as it stood in the message. */
export interface OfferedRequirements {
  requirements: PaymentRequirements;
  /** How the message called the network; a version 1 payment must repeat it. */
  networkName: string;
  /** The entry exactly as received; a version 2 payment must repeat it. */
  received: unknown;
}

const largestOfferHeader = 16_384;

/** Encodes the `PAYMENT-REQUIRED` header. */
export function encodePaymentRequired(paymentRequired: PaymentRequired): string {
  return encodeBase64Json(paymentRequired);
}

/**
 * Decodes the `PAYMENT-REQUIRED` header of version 2.
 *
 * @throws DecodeError
 */
export function decodePaymentRequired(header: string): Offer {
  const message = decodeBase64Json({
    noun: "The PAYMENT-REQUIRED header",
    value: header,
    schema: paymentRequiredSchema,
    maxLength: largestOfferHeader,
  });
  return {
    x402Version: 2,
    error: message.error,
    resource: message.resource,
    extensions: message.extensions,
    accepts: message.accepts.flatMap((received) => {
      const entry = paymentRequirementsSchema.safeParse(received);
      if (!entry.success) return [];
      return [{ requirements: entry.data, networkName: entry.data.network, received }];
    }),
  };
}

/**
 * Reads the parsed JSON body of a 402 answer in version 1.
 *
 * @throws DecodeError
 */
export function parsePaymentRequiredV1(body: unknown): Offer {
  const noun = "The body of the 402 answer";
  const message = parseShape({ noun, value: body, schema: paymentRequiredV1Schema });
  const accepts = message.accepts.flatMap((received) => {
    const entry = paymentRequirementsV1Schema.safeParse(received);
    if (!entry.success) return [];
    const requirements = fromPaymentRequirementsV1(entry.data);
    if (requirements === undefined) return [];
    return [{ requirements, networkName: entry.data.network, received, entry: entry.data }];
  });
  const first = accepts[0]?.entry;
  return {
    x402Version: 1,
    error: message.error,
    resource: first && {
      url: first.resource,
      ...(first.description ? { description: first.description } : {}),
      ...(first.mimeType ? { mimeType: first.mimeType } : {}),
    },
    accepts: accepts.map(({ requirements, networkName, received }) => ({
      requirements,
      networkName,
      received,
    })),
  };
}
