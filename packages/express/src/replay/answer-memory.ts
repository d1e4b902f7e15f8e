import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";
import type { HeldAnswer } from "../response/held-answer.ts";

/** The owner of an answer: the payment, its request, and the key that it was reserved with. */
export interface AnswerOwner {
  id: AuthorizationId;
  fingerprint: string;
  keyHash: string | undefined;
}

/** Keeps paid answers that did not arrive, for one delivery. */
export interface AnswerMemory {
  /** @param now Unix milliseconds */
  keep(owner: AnswerOwner, answer: HeldAnswer, now: number): void;
  find(owner: AnswerOwner, now: number): HeldAnswer | undefined;
  drop(id: AuthorizationId): void;
}

interface KeptAnswer extends AnswerOwner {
  answer: HeldAnswer;
  bytes: number;
  expiresAt: number;
}

/** Size of an answer besides its body: headers and our notes. */
const overheadBytes = 2_048;

/**
 * A memory for answers in this process; it ends with the process. Each payer has a share of it.
 * Beyond that share, and where the memory is full, the payer's own oldest answer is evicted, never
 * another's.
 */
export function createAnswerMemory(
  options: { keepMs?: number; maxBytes?: number; maxBytesPerPayer?: number } = {},
): AnswerMemory {
  const { keepMs = 60_000, maxBytes = 64 * 2 ** 20, maxBytesPerPayer = 4 * 2 ** 20 } = options;
  /** By `authorizationKey`, the oldest first. */
  const kept = new Map<string, KeptAnswer>();
  const bytesOf = new Map<string, number>();
  let bytes = 0;

  function count(payer: string, change: number): void {
    const sum = (bytesOf.get(payer) ?? 0) + change;
    if (sum === 0) bytesOf.delete(payer);
    else bytesOf.set(payer, sum);
    bytes += change;
  }

  function drop(id: AuthorizationId): void {
    const key = authorizationKey(id);
    const found = kept.get(key);
    if (found === undefined) return;
    kept.delete(key);
    count(id.payer, -found.bytes);
  }

  function dropExpired(now: number): void {
    for (const { id, expiresAt } of kept.values()) {
      if (expiresAt > now) return;
      drop(id);
    }
  }

  /** @returns whether there is room now */
  function makeRoom(payer: string, wanted: number): boolean {
    const isFull = () =>
      bytes + wanted > maxBytes || (bytesOf.get(payer) ?? 0) + wanted > maxBytesPerPayer;
    if (wanted > maxBytesPerPayer) return false;
    for (const { id } of kept.values()) {
      if (!isFull()) return true;
      if (id.payer === payer) drop(id);
    }
    return !isFull();
  }

  return {
    keep(owner, answer, now) {
      dropExpired(now);
      const size = answer.body.length + overheadBytes;
      const { id } = owner;
      drop(id);
      if (!makeRoom(id.payer, size)) return;
      const expiresAt = now + keepMs;
      kept.set(authorizationKey(id), { ...owner, answer, bytes: size, expiresAt });
      count(id.payer, size);
    },
    find({ id, fingerprint, keyHash }, now) {
      dropExpired(now);
      const found = kept.get(authorizationKey(id));
      const isSame = found?.fingerprint === fingerprint && found.keyHash === keyHash;
      return isSame ? found.answer : undefined;
    },
    drop,
  };
}
