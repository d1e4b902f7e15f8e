import { hash, randomUUID } from "node:crypto";
import type { WireName } from "@coinslot/protocol";
import type { Request } from "express";

/**
 * Identity of a request: a hash over its method, URL, body, the route's named headers, and its
 * payment's content. The URL is the one that the buyer wrote. A request with an unknown body equals
 * no other, so that nothing resumes it.
 *
 * A resumed payment was checked before, and its signature is not checked again. So a message that
 * names the nonce of one, and a higher amount than was paid, must be another request.
 *
 * A payment at the price of a seller's function is resumed at any later price. So the place counts
 * there, too: another host with the same path may have sold it for less. So may the same bytes have
 * been, under a type that no parser reads.
 *
 * Both versions of x402 are one dialect. Calldata is public once it is broadcast, and the challenge
 * behind an MPP nonce is not: a stranger cannot show that payment in another dialect.
 */
export function fingerprintOf(options: {
  request: Request;
  body: { state: "known"; hash: string } | { state: "unknown" };
  /** In lower case. */
  varyHeaders: readonly string[];
  /** The payment's content, as JSON writes it. */
  terms: object;
  wire: WireName;
  /** Of `placeOf`. `undefined`: the payment has to match fixed terms. */
  place: readonly unknown[] | undefined;
}): string {
  const { request, body, varyHeaders, terms, wire, place } = options;
  const bodyHash = body.state === "known" ? body.hash : randomUUID();
  const headers = varyHeaders.map((name) => request.headers[name] ?? null);
  const dialect = wire === "mpp" ? [wire] : [];
  const parts = [request.method, request.originalUrl, bodyHash, terms, headers, ...dialect];
  const placed = place === undefined ? parts : [...parts, place];
  return hash("sha256", JSON.stringify(placed));
}
