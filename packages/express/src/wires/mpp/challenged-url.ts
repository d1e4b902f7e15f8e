import { createHash } from "node:crypto";
import type { Request } from "express";

/**
 * The request that a challenge is good for: the first 16 bytes of SHA-256 over its verb, path and
 * query as written. HEAD counts as GET.
 */
export function challengedUrlOf({ method, originalUrl }: Request): string {
  const verb = method === "HEAD" ? "GET" : method;
  const hash = createHash("sha256").update(`${verb} ${originalUrl}`).digest();
  return hash.subarray(0, 16).toString("base64url");
}
