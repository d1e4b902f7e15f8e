import * as z from "zod";
import { decodeBase64Json } from "../x402/base64-json.ts";
import { encodeCanonicalJson } from "./base64url-json.ts";

/** Data of the seller's own in a challenge: a flat object of texts. */
export type Opaque = Record<string, string>;

const opaqueSchema = z.record(z.string().max(64), z.string().max(1024));

/** Encodes the seller's data for a challenge's `opaque`. */
export function encodeOpaque(opaque: Opaque): string {
  return encodeCanonicalJson(opaque);
}

/**
 * Decodes a challenge's `opaque`.
 *
 * @throws DecodeError
 */
export function decodeOpaque(value: string): Opaque {
  return decodeBase64Json({ noun: "The challenge's opaque", value, schema: opaqueSchema });
}
