import { hash, type KeyObject } from "node:crypto";
import { rememberLast } from "./remember-last.ts";

/** Writes the HMAC-SHA256 of a text in base64url. */
export type WriteMac = (rest: string) => string;

const blockBytes = 64;
const digestBytes = 32;

/**
 * Prepares HMAC-SHA256 of texts that begin alike. It is made of two plain hashes, of which Node
 * makes no object: that of `createHmac` takes four times as long beside a server's other garbage.
 *
 * @param maxRest the longest rest of a text, in bytes
 * @throws RangeError from the result, for a longer one
 */
export function prepareMac(
  key: KeyObject,
  { start, maxRest }: { start: string; maxRest: number },
): WriteMac {
  const secret = key.export();
  const head = Buffer.concat([padKey(secret, 0x36), Buffer.from(start, "utf8")]);
  const inner = Buffer.concat([head, Buffer.alloc(maxRest)]);
  const outer = Buffer.concat([padKey(secret, 0x5c), Buffer.alloc(digestBytes)]);
  const textOfLength = rememberLast((end: number) => inner.subarray(0, end));
  return (rest) => {
    if (Buffer.byteLength(rest, "utf8") > maxRest) throw new RangeError("The text is too long");
    const end = head.length + inner.write(rest, head.length, "utf8");
    outer.write(hash("sha256", textOfLength(end), "binary"), blockBytes, "binary");
    return hash("sha256", outer, "base64url");
  };
}

/** The key in a block, each byte changed by the pad. A longer key is hashed first: RFC 2104. */
function padKey(secret: Buffer, pad: number): Buffer {
  const key = secret.length > blockBytes ? hash("sha256", secret, "buffer") : secret;
  const block = Buffer.alloc(blockBytes, pad);
  for (const [index, byte] of key.entries()) block[index] = byte ^ pad;
  return block;
}
