import { createHash } from "node:crypto";
import type { Slices } from "./slices.ts";

/** A document as it is sent. */
export interface Served {
  contentType: string;
  body: Buffer;
  etag: string;
}

/** Joins and hashes the pieces of a text, as its slices allow. */
export async function toServed(
  pieces: Iterable<string>,
  { contentType, slices }: { contentType: string; slices: Slices },
): Promise<Served> {
  const hash = createHash("sha256");
  const parts: Buffer[] = [];
  let text = "";
  const flush = (): void => {
    const part = Buffer.from(text, "utf8");
    hash.update(part);
    parts.push(part);
    text = "";
  };
  for (const piece of pieces) {
    text += piece;
    if (!slices.isOver()) continue;
    flush();
    await slices.next();
  }
  flush();
  return { contentType, body: Buffer.concat(parts), etag: `"${hash.digest("base64url")}"` };
}
