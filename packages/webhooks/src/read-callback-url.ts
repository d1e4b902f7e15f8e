import { isIP } from "node:net";
import { isPublicAddress } from "./public-address.ts";

const maxCharacters = 2_048;

/**
 * Reads the URL of `X-Event-Callback`: https, without credentials, and, where it names an address,
 * a public one. Names are looked up when an event is sent.
 *
 * @returns `undefined` for any URL that may not receive events: a payment never fails for its
 * callback
 */
export function readCallbackUrl(
  header: string | undefined,
  { allowPrivate }: { allowPrivate: boolean },
): URL | undefined {
  // A header that came twice has a space between its values.
  if (header === undefined || header.length > maxCharacters || /\s/.test(header)) return undefined;
  if (!URL.canParse(header)) return undefined;
  const url = new URL(header);
  if (url.username !== "" || url.password !== "") return undefined;
  if (allowPrivate && url.protocol === "http:") return url;
  if (url.protocol !== "https:") return undefined;
  // The URL parser has normalised octal, hexadecimal and shortened IPv4 addresses.
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isAllowed = allowPrivate || isIP(host) === 0 || isPublicAddress(host);
  return isAllowed ? url : undefined;
}
