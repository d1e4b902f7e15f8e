import { createHash, randomUUID } from "node:crypto";
import { type Authorization, formatAuthorization } from "@coinslot/protocol";
import type { Request } from "express";

/**
 * Which request this is: a hash over its method, its URL as the buyer wrote it, its body, and what
 * its payment says. One whose body nobody can know is like no other request, so that nothing resumes
 * it.
 *
 * A payment that is resumed was checked before, and its signature is not checked again. So a message
 * that names the nonce of one, and a higher amount than was paid, must be another request.
 */
export function fingerprintOf(
  request: Request,
  body: { state: "known"; hash: string } | { state: "unknown" },
  authorization: Authorization,
): string {
  const bodyHash = body.state === "known" ? body.hash : randomUUID();
  const terms = formatAuthorization(authorization);
  const parts = JSON.stringify([request.method, request.originalUrl, bodyHash, terms]);
  return createHash("sha256").update(parts).digest("hex");
}
