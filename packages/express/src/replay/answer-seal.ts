import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";

const cipher = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;

/** Seals and opens the answer to one payment, under the buyer's idempotency key. */
export interface AnswerSeal {
  /** Name of the sealed answer in the store; reveals nothing about the key. */
  keyHash: string;
  seal(answer: Uint8Array): Uint8Array;
  /** Returns `undefined` when it was not sealed by this key for this payment. */
  open(sealed: Uint8Array): Buffer | undefined;
}

/**
 * Derives two values from a buyer's idempotency key, in its payer's scope. They are a name for the
 * answer, and a key to encrypt it under (HKDF-SHA-256, AES-256-GCM). A reader of the store without
 * the idempotency key learns neither.
 */
export function createAnswerSeal(options: { key: string; id: AuthorizationId }): AnswerSeal {
  const { key, id } = options;
  const derived = Buffer.from(hkdfSync("sha256", key, id.payer, "coinslot answer", 64));
  const secret = derived.subarray(32);
  const payment = Buffer.from(authorizationKey(id));
  return {
    keyHash: derived.subarray(0, 32).toString("hex"),
    seal(answer) {
      const iv = randomBytes(ivBytes);
      const sealing = createCipheriv(cipher, secret, iv).setAAD(payment);
      const text = Buffer.concat([sealing.update(answer), sealing.final()]);
      return Buffer.concat([iv, sealing.getAuthTag(), text]);
    },
    open(sealed) {
      if (sealed.length < ivBytes + tagBytes) return undefined;
      const iv = sealed.subarray(0, ivBytes);
      const tag = sealed.subarray(ivBytes, ivBytes + tagBytes);
      try {
        const opening = createDecipheriv(cipher, secret, iv).setAAD(payment).setAuthTag(tag);
        const text = opening.update(sealed.subarray(ivBytes + tagBytes));
        return Buffer.concat([text, opening.final()]);
      } catch {
        return undefined;
      }
    },
  };
}
