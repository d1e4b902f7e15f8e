import * as z from "zod";
import { type Address, toLowerHex } from "../money/address.ts";
import type { Network } from "../money/network.ts";
import { type ExactEvmPayload, exactEvmPayloadSchema } from "../x402/authorization.ts";
import { decodeBase64Json } from "../x402/base64-json.ts";
import { encodeCanonicalJson } from "./base64url-json.ts";
import { challengeSchema } from "./challenge.ts";
import { paymentScheme } from "./challenge-header.ts";
import { authorizationType } from "./charge-request.ts";

/** Largest credential that is read, in characters of base64. */
const maxCredentialLength = 16_384;

/**
 * A credential: its whole challenge as it came, and a payload of a type that the challenge names.
 */
const credentialSchema = z.object({
  challenge: challengeSchema,
  payload: z.looseObject({ type: z.string().max(64) }),
  /** The payer, as a decentralised identifier. */
  source: z.string().max(256).optional(),
});

/** A payment by the `Payment` scheme, as it travels. */
export type Credential = z.infer<typeof credentialSchema>;

const { signature, authorization } = exactEvmPayloadSchema.shape;

/** The payload of a credential of type `authorization`: one flat object. */
const authorizationPayloadSchema = authorization.extend({
  type: z.literal(authorizationType),
  signature,
});

/** Matches the value of a header that carries a credential: RFC 9110 scheme names have no case. */
const schemeForm = new RegExp(`^${paymentScheme}[ \\t]+`, "i");

/** Returns whether a value of `Authorization` speaks of payment, and of no other scheme. */
export function isPaymentScheme(value: string): boolean {
  return schemeForm.test(value) || value.toLowerCase() === paymentScheme.toLowerCase();
}

/**
 * Decodes the value of a header that carries a credential.
 *
 * @throws DecodeError
 */
export function decodeCredential(header: string): Credential {
  return decodeBase64Json({
    noun: "The Payment credential",
    value: header.replace(schemeForm, ""),
    schema: credentialSchema,
    maxLength: maxCredentialLength,
  });
}

/** Encodes a credential as the value of its header. */
export function encodeCredential(credential: Credential): string {
  return `${paymentScheme} ${encodeCanonicalJson(credential)}`;
}

/**
 * Reads a credential's payload in the form of x402.
 *
 * @returns `undefined` for another type, or where it is no authorization.
 */
export function readAuthorizationPayload({
  payload,
}: Pick<Credential, "payload">): ExactEvmPayload | undefined {
  const read = authorizationPayloadSchema.safeParse(payload);
  if (!read.success) return undefined;
  const { type: _type, signature, ...authorization } = read.data;
  return { signature, authorization };
}

/** Writes an authorization as a credential's payload. */
export function writeAuthorizationPayload(paid: ExactEvmPayload): Credential["payload"] {
  return { type: authorizationType, ...paid.authorization, signature: paid.signature };
}

/** A payer's `did:pkh`, as `source` names it. */
export function formatSource(network: Network, payer: Address): string {
  return `did:pkh:${network}:${payer}`;
}

/** Returns whether a `source` names this payer. Addresses have no case; the rest has. */
export function isSourceOf(source: string, network: Network, payer: Address): boolean {
  const prefix = `did:pkh:${network}:`;
  const address = source.slice(prefix.length);
  if (!source.startsWith(prefix) || !/^0x[0-9a-fA-F]{40}$/.test(address)) return false;
  return address.toLowerCase() === toLowerHex(payer);
}
