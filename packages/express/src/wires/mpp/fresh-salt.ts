import { randomFillSync } from "node:crypto";

const saltBytes = 16;

/** Random bytes for 256 salts: asked for one by one, they cost more than the rest of a challenge. */
const pool = Buffer.alloc(256 * saltBytes);
let used = pool.length;

/** 16 random bytes in base64url. Each is given out once. */
export function freshSalt(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const start = used;
  used += saltBytes;
  return pool.toString("base64url", start, used);
}
