import type { IncomingMessage } from "node:http";
import type { Place } from "./read-place.ts";

/**
 * Whether a page of this very origin has sent the request. Browsers add both headers, and scripts
 * cannot set them. Ports of one host share its cookies, so `same-site` is not enough.
 */
export function isSameOrigin({ headers }: IncomingMessage, { origin }: Place): boolean {
  const { "sec-fetch-site": site = "same-origin" } = headers;
  return headers.origin === origin && site === "same-origin";
}

/** Whether a page of another origin has sent a `GET`, as far as its browser says. */
export function isCrossOrigin({ headers }: IncomingMessage, { origin }: Place): boolean {
  const { "sec-fetch-site": site = "none" } = headers;
  if (headers.origin !== undefined && headers.origin !== origin) return true;
  return site !== "same-origin" && site !== "none";
}
