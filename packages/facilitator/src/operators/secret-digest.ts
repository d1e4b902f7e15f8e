import { createHash, timingSafeEqual } from "node:crypto";

/** SHA-256: a fast hash protects 256 random bits well enough. */
export function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** In constant time: the duration does not reveal how much of a guess is right. */
export function isDigestOf(digest: Buffer, guess: string): boolean {
  return timingSafeEqual(digest, digestOf(guess));
}
