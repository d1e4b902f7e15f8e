import * as z from "zod";
import { channelScheme } from "../channels/channel-offer.ts";
import { channelOperationSchema, channelPayloadSchema } from "../channels/channel-payload.ts";
import { parseShape } from "../x402/base64-json.ts";
import { DecodeError } from "../x402/decode-error.ts";
import { paymentRequirementsSchema } from "../x402/payment-requirements.ts";

/** Requirements of a channel. A seller's server sends those of its own calls with a time of 0. */
const requirementsSchema = paymentRequirementsSchema.extend({
  scheme: z.literal(channelScheme),
  maxTimeoutSeconds: z.int().min(0),
});

const [depositSchema, voucherSchema] = channelPayloadSchema.options;

/** A payload as its buyer sends it, or a call of the seller's server. */
const settlementSchema = z.union([depositSchema, voucherSchema, channelOperationSchema]);

function messageOf<Payload extends z.ZodType>(payload: Payload) {
  return z.object({
    paymentPayload: z.object({ x402Version: z.literal(2), accepted: requirementsSchema, payload }),
    paymentRequirements: requirementsSchema,
  });
}

const verificationSchema = messageOf(channelPayloadSchema);
const callSchema = messageOf(settlementSchema);

/** Body of `/verify` about a channel. */
export type ChannelVerification = z.infer<typeof verificationSchema>;
/** Body of `/settle` about a channel. */
export type ChannelSettlement = z.infer<typeof callSchema>;

export type ReadChannelRequest<Request> =
  | { ok: true; request: Request }
  | { ok: false; reason: "invalid_payload"; message: string };

const namedSchema = z.object({ scheme: z.literal(channelScheme) });
const bodySchema = z.union([
  z.object({ paymentRequirements: namedSchema }),
  z.object({ paymentPayload: z.object({ accepted: namedSchema }) }),
]);

/** Returns whether the body of `/verify` or `/settle` is about a channel. */
export function isChannelMessage(body: unknown): boolean {
  return bodySchema.safeParse(body).success;
}

/** Reads the body of `/verify` about a channel. Never throws. */
export function readChannelVerification(body: unknown): ReadChannelRequest<ChannelVerification> {
  return read(body, verificationSchema);
}

/** Reads the body of `/settle` about a channel. Never throws. */
export function readChannelSettlement(body: unknown): ReadChannelRequest<ChannelSettlement> {
  return read(body, callSchema);
}

function read<Request>(body: unknown, schema: z.ZodType<Request>): ReadChannelRequest<Request> {
  try {
    return { ok: true, request: parseShape({ noun: "The request", value: body, schema }) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return { ok: false, reason: "invalid_payload", message: error.message };
  }
}
