import * as z from "zod";
import {
  decodeBase64Json,
  encodeBase64Json,
  maxAnswerHeaderLength,
  parseShape,
} from "./base64-json.ts";
import { optionalOrNull } from "./optional-or-null.ts";
import {
  fromPaymentRequirementsV1,
  type PaymentRequirements,
  paymentRequirementsSchema,
  paymentRequirementsV1Schema,
} from "./payment-requirements.ts";
import { remarkSchema } from "./remark.ts";
import { type ResourceInfo, resourceInfoSchema } from "./resource-info.ts";

/** The body of a 402 answer in version 1. */
const paymentRequiredV1Schema = z.object({
  x402Version: z.literal(1),
  error: optionalOrNull(remarkSchema(1024)),
  accepts: z.array(z.unknown()).max(64),
});

/** The body of a 402 answer in version 1, as this package writes it. */
export interface PaymentRequiredV1 {
  x402Version: 1;
  error: string;
  accepts: z.infer<typeof paymentRequirementsV1Schema>[];
}

/** The `PAYMENT-REQUIRED` header of a 402 answer in version 2. */
const paymentRequiredSchema = z.object({
  x402Version: z.literal(2),
  error: optionalOrNull(remarkSchema(1024)),
  resource: optionalOrNull(resourceInfoSchema),
  accepts: z.array(z.unknown()).max(64),
  extensions: optionalOrNull(z.record(z.string().max(128), z.unknown())),
});

/** The `PAYMENT-REQUIRED` header of a 402 answer in version 2, as this package writes it. */
export interface PaymentRequired {
  x402Version: 2;
  error?: string;
  resource: ResourceInfo;
  accepts: PaymentRequirements[];
  extensions?: Record<string, unknown>;
}

/** Contents of a 402 answer, in either version. */
export interface Offer {
  x402Version: 1 | 2;
  error?: string | undefined;
  resource?: ResourceInfo | undefined;
  /** The readable ways to pay; entries in other schemes or on unknown networks are left out. */
  accepts: OfferedRequirements[];
  extensions?: Record<string, unknown> | undefined;
}

/**
 * One way to pay in the internal form, with the members that a payment of its version must repeat.
 */
export type OfferedRequirements =
  | {
      x402Version: 1;
      requirements: PaymentRequirements;
      /** Name of the network in the message. */
      networkName: string;
      /** The resource that this entry is for. */
      resourceUrl: string;
    }
  | {
      x402Version: 2;
      requirements: PaymentRequirements;
      /** The entry exactly as received, with unknown members. */
      accepted: PaymentRequirements;
    };

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
    maxLength: maxAnswerHeaderLength,
  });
  return {
    x402Version: 2,
    error: message.error,
    resource: message.resource,
    extensions: message.extensions,
    accepts: message.accepts.filter(isPaymentRequirements).map((accepted) => ({
      x402Version: 2,
      requirements: paymentRequirementsSchema.parse(accepted),
      accepted,
    })),
  };
}

// A value that passes the schema is of its type, unknown members and all. An `extra` of null goes
// back as it came.
function isPaymentRequirements(entry: unknown): entry is PaymentRequirements {
  return paymentRequirementsSchema.safeParse(entry).success;
}

/**
 * Reads the parsed JSON body of a 402 answer in version 1.
 *
 * @throws DecodeError
 */
export function parsePaymentRequiredV1(body: unknown): Offer {
  const noun = "The body of the 402 answer";
  const message = parseShape({ noun, value: body, schema: paymentRequiredV1Schema });
  const entries = message.accepts.flatMap((entry) => {
    const parsed = paymentRequirementsV1Schema.safeParse(entry);
    return parsed.success ? [parsed.data] : [];
  });
  const accepts = entries.flatMap((entry): OfferedRequirements[] => {
    const requirements = fromPaymentRequirementsV1(entry);
    if (requirements === undefined) return [];
    const { network: networkName, resource: resourceUrl } = entry;
    return [{ x402Version: 1, requirements, networkName, resourceUrl }];
  });
  const first = entries[0];
  return {
    x402Version: 1,
    error: message.error,
    resource: first && {
      url: first.resource,
      ...(first.description ? { description: first.description } : {}),
      ...(first.mimeType ? { mimeType: first.mimeType } : {}),
    },
    accepts,
  };
}
