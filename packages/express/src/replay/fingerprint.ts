import { createHash, randomUUID } from "node:crypto";
import { type Authorization, formatAuthorization } from "@coinslot/protocol";
import type { Request } from "express";

/**
 * Identity of a request: a hash over its method, URL, body, the route's named headers, and its
 * payment's content. The URL is the one that the buyer wrote. A request with an unknown body equals
 * no other, so that nothing resumes it.
 *
 * A resumed payment was checked before, and its signature is not checked again. So a message that
 * names the nonce of one, and a higher amount than was paid, must be another request.
 */
export function fingerprintOf(options: {
  request: Request;
  body: { state: "known"; hash: string } | { state: "unknown" };
  /** In lower case. */
  varyHeaders: readonly string[];
  authorization: Authorization;
}): string {
  const { request, body, varyHeaders, authorization } = options;
  const bodyHash = body.state === "known" ? body.hash : randomUUID();
  const terms = formatAuthorization(authorization);
  const headers = varyHeaders.map((name) => request.headers[name] ?? null);
  const parts = JSON.stringify([request.method, request.originalUrl, bodyHash, terms, headers]);
  return createHash("sha256").update(parts).digest("hex");
}
