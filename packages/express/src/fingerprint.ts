import { createHash, randomUUID } from "node:crypto";
import type { Request } from "express";

/**
 * Which request this is: a hash over its method, its URL as the buyer wrote it, and its body. One
 * whose body nobody can know is like no other request, so that nothing resumes it.
 */
export function fingerprintOf(
  request: Request,
  body: { state: "known"; hash: string } | { state: "unknown" },
): string {
  const bodyHash = body.state === "known" ? body.hash : randomUUID();
  const parts = JSON.stringify([request.method, request.originalUrl, bodyHash]);
  return createHash("sha256").update(parts).digest("hex");
}
