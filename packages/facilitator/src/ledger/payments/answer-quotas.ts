import type { Address, SealedAnswer } from "@coinslot/protocol";

/** Quotas of kept answers, in bytes. */
export interface AnswerLimits {
  bytesPerPayer: number;
  /** Kept by one process. */
  bytesPerProcess: number;
  /** In the table, by all processes. */
  bytesInTable: number;
}

/** A kept answer by its name in the table. */
export interface AnswerName {
  payer: Address;
  keyHash: string;
}

/** Sizes of the answers that this process has kept, without a query to the database. */
export interface AnswerQuotas {
  /**
   * Makes room for an answer among those of its payer; another's is never touched.
   *
   * @returns whether it is kept, and the answers that must go
   */
  makeRoom(
    payer: Address,
    answer: SealedAnswer,
    expiresAt: number,
  ): { isKept: boolean; evicted: AnswerName[] };
  /** Forgets what has expired. Unix milliseconds. */
  dropExpired(now: number): void;
  /** Returns whether the table was not measured lately. Unix milliseconds. */
  isMeasureDue(now: number): boolean;
  /** Records the bytes in the table, those of this process among them. */
  measure(tableBytes: number, now: number): void;
}

/** Size of a row besides the sealed bytes. */
const overheadBytes = 256;
/** A payer beyond its share gives up an eighth of it at once, not a row for each answer. */
const keptShare = 7 / 8;
/** Interval between sums over all processes' kept answers: the query reads every one of them. */
const measureEveryMs = 300_000;

/** Creates the account of one process. */
export function createAnswerQuotas(limits: AnswerLimits): AnswerQuotas {
  const { bytesPerPayer, bytesPerProcess, bytesInTable } = limits;
  /** Of each payer, the oldest first. */
  const payers = new Map<Address, { bytes: number; answers: Map<string, Kept> }>();
  let bytes = 0;
  let bytesOfOthers = 0;
  let measuredAt = Number.NEGATIVE_INFINITY;

  function remove(payer: Address, keyHash: string): void {
    const own = payers.get(payer);
    const kept = own?.answers.get(keyHash);
    if (own === undefined || kept === undefined) return;
    own.answers.delete(keyHash);
    own.bytes -= kept.bytes;
    bytes -= kept.bytes;
    if (own.answers.size === 0) payers.delete(payer);
  }

  return {
    makeRoom(payer, { keyHash, sealed }, expiresAt) {
      const size = sealed.length + overheadBytes;
      if (size > bytesPerPayer) return { isKept: false, evicted: [] };
      remove(payer, keyHash);
      const room = Math.min(bytesPerProcess, bytesInTable - bytesOfOthers);
      const ofPayer = () => payers.get(payer)?.bytes ?? 0;
      const isBeyondShare = ofPayer() + size > bytesPerPayer;
      const share = isBeyondShare ? bytesPerPayer * keptShare : bytesPerPayer;
      const evicted: AnswerName[] = [];
      for (const oldest of payers.get(payer)?.answers.keys() ?? []) {
        if (ofPayer() + size <= share && bytes + size <= room) break;
        remove(payer, oldest);
        evicted.push({ payer, keyHash: oldest });
      }
      // The payer has nothing of its own left to give up.
      if (bytes + size > room) return { isKept: false, evicted };
      const own = payers.get(payer) ?? { bytes: 0, answers: new Map<string, Kept>() };
      payers.set(payer, own);
      own.answers.set(keyHash, { bytes: size, expiresAt });
      own.bytes += size;
      bytes += size;
      return { isKept: true, evicted };
    },
    dropExpired(now) {
      for (const [payer, { answers }] of payers) {
        for (const [keyHash, { expiresAt }] of answers) {
          if (expiresAt > now) break;
          remove(payer, keyHash);
        }
      }
    },
    isMeasureDue: (now) => now - measuredAt >= measureEveryMs,
    measure(tableBytes, now) {
      measuredAt = now;
      bytesOfOthers = Math.max(0, tableBytes - bytes);
    },
  };
}

interface Kept {
  bytes: number;
  expiresAt: number;
}
