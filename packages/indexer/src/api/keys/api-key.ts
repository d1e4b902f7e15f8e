import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A key in its parts. The id finds the row and is no secret; the rest of the text is. */
export interface ApiKeyText {
  id: string;
  key: string;
}

const keyForm = /^csk_([A-Za-z0-9]{12})_[A-Za-z0-9_-]{32,64}$/;

/** A fresh key: `csk_<id>_<secret>` with 256 random bits. */
export function generateKey(random: (size: number) => Buffer = randomBytes): ApiKeyText {
  const id = random(6).toString("hex");
  return { id, key: `csk_${id}_${random(32).toString("base64url")}` };
}

/** The parts of a presented key; `undefined` if it has not the form of a key. */
export function readKey(text: string): ApiKeyText | undefined {
  const id = keyForm.exec(text)?.[1];
  return id === undefined ? undefined : { id, key: text };
}

/**
 * The stored form of a key: SHA-256 over a salt of its own and the key. A slow hash protects
 * passwords that people invent. It adds nothing against guesses at 256 random bits.
 */
export function hashKey(key: string, salt: string): string {
  return createHash("sha256").update(salt).update(":").update(key).digest("hex");
}

/** Compares two hashes in a time that does not depend on where they differ. */
export function isSameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, "hex"), Buffer.from(other, "hex")];
  return a.length === b.length && timingSafeEqual(a, b);
}
