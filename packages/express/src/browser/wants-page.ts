import type { IncomingHttpHeaders } from "node:http";

/**
 * Returns whether a request shall get a page for people in place of JSON: a navigation, or one that
 * prefers HTML. Programs accept any type, another one, or say nothing.
 *
 * Browsers leave `Sec-Fetch-Mode` out on plain HTTP, where `Accept` decides.
 */
export function wantsPage(headers: IncomingHttpHeaders): boolean {
  if (headers["sec-fetch-mode"] === "navigate") return true;
  const { accept } = headers;
  if (accept === undefined) return false;
  const html = accept.search(/(?:^|[\s,])text\/html(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))(?=[\s;,]|$)/i);
  if (html < 0) return false;
  const any = accept.indexOf("*/*");
  return any < 0 || html < any;
}

/** Request headers that decide between page and JSON. */
export const pageDecidedBy = "Accept, Sec-Fetch-Mode";
