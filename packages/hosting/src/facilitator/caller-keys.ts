import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A caller: a name for people, and the SHA-256 of its key in hex. */
export interface CallerKey {
  name: string;
  hash: string;
}

/** A key in its two forms: one for the caller, one for the facilitator. */
export interface NewCallerKey {
  key: string;
  /** Entry of the keys file: `<name>:sha256:<hash>`. */
  entry: string;
}

const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const keyForm = /^[\x21-\x2b\x2d-\x7e]{24,256}$/;
const hashForm = /^sha256:([0-9a-f]{64})$/;

/** Returns whether a text may name a caller. */
export function isCallerName(text: string): boolean {
  return nameForm.test(text);
}

/** Draws a key of 256 random bits. */
export function createCallerKey(name: string): NewCallerKey {
  const key = `csf_${randomBytes(32).toString("base64url")}`;
  return { key, entry: `${name}:sha256:${hashKey(key)}` };
}

/**
 * Reads entries `<name>:<key>` or `<name>:sha256:<hash>`, separated by commas or line ends. A file
 * outlives the process, so it may hold hashes alone. Lines that begin with # are comments.
 *
 * @param tell receives a problem by the entry's number; no key is repeated
 */
export function readCallerKeys(
  text: string,
  { isFile, tell }: { isFile: boolean; tell: (problem: string) => void },
): CallerKey[] {
  const lines = text.split(/\r?\n/).filter((line) => !/^\s*#/.test(line));
  const entries = lines.flatMap((line) => line.split(",")).flatMap((entry) => entry.trim() || []);
  const keys = entries.flatMap((entry, index): CallerKey[] => {
    const end = entry.indexOf(":");
    const [name, secret] = [entry.slice(0, end), entry.slice(end + 1)];
    const place = `entry ${index + 1}`;
    if (end < 0 || !isCallerName(name)) {
      tell(`${place} must be <name>:<key>, the name of letters, digits, dots and dashes`);
      return [];
    }
    const hash = hashForm.exec(secret)?.[1];
    if (hash !== undefined) return [{ name, hash }];
    if (isFile) {
      tell(
        `${place} (${name}) must be a hash in a file: let coinslot facilitator new-key make one`,
      );
    } else if (!keyForm.test(secret)) {
      tell(`${place} (${name}) must have a key of 24 to 256 letters, digits or signs`);
    }
    return [{ name, hash: hashKey(secret) }];
  });
  if (entries.length === 0) tell("holds no entry");
  const names = keys.map(({ name }) => name);
  for (const name of new Set(names.filter((each, index) => names.indexOf(each) !== index))) {
    tell(`${name} is listed twice`);
  }
  return keys;
}

/**
 * The owner of a key, or `undefined`. A fast hash protects 256 random bits well enough. Every key
 * is compared in constant time, so the duration reveals neither a hash nor the matching key.
 */
export function findCaller(keys: readonly CallerKey[], presented: string): string | undefined {
  const digest = Buffer.from(hashKey(presented), "hex");
  let found: string | undefined;
  for (const { name, hash } of keys) {
    if (timingSafeEqual(digest, Buffer.from(hash, "hex"))) found = name;
  }
  return found;
}

function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}
