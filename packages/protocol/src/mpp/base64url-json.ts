import canonicalize from "canonicalize";

/**
 * Encodes a value as base64url, without padding, of its canonical JSON (RFC 8785): equal values
 * have equal texts.
 *
 * @throws TypeError for a value that JSON cannot express.
 */
export function encodeCanonicalJson(value: unknown): string {
  const json = canonicalize(value);
  if (json === undefined) throw new TypeError("JSON cannot express this value");
  return Buffer.from(json, "utf8").toString("base64url");
}
