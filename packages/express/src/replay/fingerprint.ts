import { createHash, randomUUID } from "node:crypto";
import { type Authorization, formatAuthorization, type WireName } from "@coinslot/protocol";
import type { Request } from "express";

/**
 * Identity of a request: a hash over its method, URL, body, the route's named headers, and its
 * payment's content. The URL is the one that the buyer wrote. A request with an unknown body equals
 * no other, so that nothing resumes it.
 *
 * A resumed payment was checked before, and its signature is not checked again. So a message that
 * names the nonce of one, and a higher amount than was paid, must be another request.
 *
 * Both versions of x402 are one dialect. Calldata is public once it is broadcast, and the challenge
 * behind an MPP nonce is not: a stranger cannot show that payment in another dialect.
 */
export function fingerprintOf(options: {
  request: Request;
  body: { state: "known"; hash: string } | { state: "unknown" };
  /** In lower case. */
  varyHeaders: readonly string[];
  authorization: Authorization;
  wire: WireName;
}): string {
  const { request, body, varyHeaders, authorization, wire } = options;
  const bodyHash = body.state === "known" ? body.hash : randomUUID();
  const terms = formatAuthorization(authorization);
  const headers = varyHeaders.map((name) => request.headers[name] ?? null);
  const dialect = wire === "mpp" ? [wire] : [];
  const parts = [request.method, request.originalUrl, bodyHash, terms, headers, ...dialect];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
