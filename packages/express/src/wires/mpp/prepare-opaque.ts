import { randomFillSync } from "node:crypto";

const saltBytes = 16;
/** The end of the JSON, `"<salt>"}`, and two zero bytes: base64url of whole groups. */
const endLength = 36;
/** Without the two characters of zeros. */
const shownLength = 34;
const count = 256;

/**
 * Ends of `opaque` texts with a salt of 16 random bytes each. Made one by one, they cost more than
 * the rest of a challenge.
 */
let ends = "";
let used = count;
const pool = Buffer.alloc(count * saltBytes);

/**
 * Prepares the `opaque` texts of one URL, of which no two are ever alike: base64url of
 * `{"for":"<hash>","salt":"<salt>"}`, in the order of names that JCS has.
 *
 * @param urlHash of 22 characters of base64url, which need no escape in JSON
 */
export function prepareOpaque(urlHash: string): () => string {
  const start = startOfOpaque(urlHash);
  return () => start + freshEnd();
}

/**
 * The start that the `opaque` texts of one URL share, and no other URL's have. 39 bytes: whole
 * groups of base64url.
 *
 * @param urlHash of 22 characters of base64url, which need no escape in JSON
 */
export function startOfOpaque(urlHash: string): string {
  return Buffer.from(`{"for":"${urlHash}","salt":`, "latin1").toString("base64url");
}

/** Each is given out once. */
function freshEnd(): string {
  if (used === count) {
    ends = makeEnds();
    used = 0;
  }
  const start = used * endLength;
  used += 1;
  return ends.slice(start, start + shownLength);
}

function makeEnds(): string {
  randomFillSync(pool);
  let text = "";
  for (let start = 0; start < pool.length; start += saltBytes) {
    text += `"${pool.toString("base64url", start, start + saltBytes)}"}\0\0`;
  }
  return Buffer.from(text, "latin1").toString("base64url");
}
