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
  // A price in a token already includes the `extra` of its way to pay.
  const accepts = route.accepts.map(({ price, extra, ...way }) =>
    typeof price === "function" ? { extra, ...way } : { ...price, ...way },
  );
  const size = Buffer.byteLength(JSON.stringify({ ...route, accepts }));
  if (size <= maxOffer) return undefined;
  return `its offer has ${size} bytes, and travels in a header: no client reads more than ${maxOffer}. Shorten extra or description, or name fewer ways to pay`;
}
