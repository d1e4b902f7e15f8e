import type { PaymentTerms } from "../routes/read-payment-option.ts";

/**
 * In bytes, without the URL of the request. An offer is a header in base64, and clients of Node
 * read 16 KB of headers in all. This leaves room for a URL of 2,048 characters and 2 KB of other
 * headers.
 */
const maxOffer = 8_000;

/**
 * The reason why no client could read the offer of a route. Results of functions are not counted.
 */
export function problemOfOfferSize(route: {
  accepts: readonly PaymentTerms[];
  description: string | undefined;
  mimeType: string | undefined;
  resource: string | undefined;
}): string | undefined {
  if (bytesAtMost(route) <= maxOffer) return undefined;
  // A price in a token already includes the `extra` of its way to pay.
  const accepts = route.accepts.map(({ price, extra, ...way }) =>
    typeof price === "function" ? { extra, ...way } : { ...price, ...way },
  );
  const size = Buffer.byteLength(JSON.stringify({ ...route, accepts }));
  if (size <= maxOffer) return undefined;
  return `its offer has ${size} bytes, and travels in a header: no client reads more than ${maxOffer}. Shorten extra or description, or name fewer ways to pay`;
}

/** A bound of a value's bytes as JSON, without writing it: most offers are far below the limit. */
function bytesAtMost(value: unknown): number {
  if (typeof value === "string") return value.length * maxBytesPerUnit + 2;
  if (typeof value !== "object" || value === null) return maxLiteral;
  let bytes = 2;
  for (const name of Object.keys(value)) {
    bytes += name.length * maxBytesPerUnit + 4 + bytesAtMost(Reflect.get(value, name));
  }
  return bytes;
}

/** A control character is written as an escape of six. */
const maxBytesPerUnit = 6;
/** A number such as `-1.2345678901234567e+100`, `false` or `null`. */
const maxLiteral = 26;
