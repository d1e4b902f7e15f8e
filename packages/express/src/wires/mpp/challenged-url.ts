import { hash } from "node:crypto";
import type { Request } from "express";

/** The URL that a challenge is good for: verb, path and query as written. HEAD counts as GET. */
export function challengedUrlOf({ method, originalUrl }: Request): string {
  return `${method === "HEAD" ? "GET" : method} ${originalUrl}`;
}

/** The form in which a challenge holds it: the first 16 bytes of its SHA-256, in base64url. */
export function hashUrl(challengedUrl: string): string {
  return hash("sha256", challengedUrl, "buffer").toString("base64url", 0, 16);
}
