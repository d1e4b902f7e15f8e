import type { ServerResponse } from "node:http";
import { exposedHeaders } from "../wires/registry.ts";

/** Keeps a paid answer out of shared caches, also where the handler allowed them. */
export function makePrivate(response: ServerResponse): void {
  removeTargetedCaching(response);
  const current = response.getHeader("Cache-Control");
  const directives = (Array.isArray(current) ? current.join(",") : String(current ?? ""))
    .split(",")
    .map((directive) => directive.trim())
    .filter(
      (directive) => directive !== "" && !/^(?:public$|s-maxage=|private\b)/i.test(directive),
    );
  response.setHeader("Cache-Control", ["private", ...directives].join(", "));
}

/** Keeps an offer or a refusal out of every cache. */
export function makeUncacheable(response: ServerResponse): void {
  removeTargetedCaching(response);
  response.setHeader("Cache-Control", "no-store");
}

const targetedCaching = new Set(["edge-control", "surrogate-control", "x-accel-expires"]);

/**
 * Removes the headers that some shared caches read in place of `Cache-Control`: RFC 9213, and its
 * predecessors.
 */
function removeTargetedCaching(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) {
    if (name.endsWith("cdn-cache-control") || targetedCaching.has(name)) {
      response.removeHeader(name);
    }
  }
}

/** Lets a page on another origin read our headers, if the application lets it read the answer. */
export function exposePaymentHeaders(response: ServerResponse): void {
  if (!response.hasHeader("Access-Control-Allow-Origin")) return;
  const current = response.getHeader("Access-Control-Expose-Headers");
  const exposed = (Array.isArray(current) ? current.join(",") : String(current ?? ""))
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const known = new Set(exposed.map((name) => name.toLowerCase()));
  const missing = exposedHeaders.filter((name) => !known.has(name.toLowerCase()));
  response.setHeader("Access-Control-Expose-Headers", [...exposed, ...missing].join(", "));
}
