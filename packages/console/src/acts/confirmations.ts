import { randomInt } from "node:crypto";
import { digestOf, isDigestOf } from "@coinslot/facilitator";
import type { Session } from "../sessions/session.ts";

/** Confirmations of acts that move much money. */
export interface Confirmations {
  /**
   * `needed`: none was presented, and a code is printed where there is no key. `wrong` counts
   * against the session.
   */
  check(
    session: Session,
    asked: { fingerprint: string; words: string; presented: string | undefined },
  ): "confirmed" | "needed" | "wrong";
}

/** Wrong confirmations that end a session. */
export const maxWrongConfirmations = 5;
const codeLifeMs = 5 * 60_000;
/** Of one session at a time: it has a window for each. */
const maxCodes = 8;

interface Code {
  digest: Buffer;
  expiresAtMs: number;
}

/**
 * Creates the check: the key again where there is one, else a code of eight digits. A code is for
 * one act of one session, and the line that prints it names the act.
 */
export function createConfirmations(options: {
  hasKey: boolean;
  isKey: (guess: string) => boolean;
  print: (line: string) => void;
  now: () => number;
}): Confirmations {
  const { hasKey, isKey, print, now } = options;
  /** By the fingerprints of their acts, the oldest first. */
  const codesOf = new WeakMap<Session, Map<string, Code>>();

  function currentCodes(session: Session): Map<string, Code> {
    const codes = codesOf.get(session) ?? new Map<string, Code>();
    for (const [each, { expiresAtMs }] of codes) if (now() >= expiresAtMs) codes.delete(each);
    codesOf.set(session, codes);
    return codes;
  }

  function printCode(session: Session, fingerprint: string, words: string): void {
    const codes = currentCodes(session);
    if (codes.has(fingerprint)) return;
    const [oldest] = codes.size >= maxCodes ? codes.keys() : [];
    if (oldest !== undefined) codes.delete(oldest);
    const code = String(randomInt(10 ** 8)).padStart(8, "0");
    codes.set(fingerprint, { digest: digestOf(code), expiresAtMs: now() + codeLifeMs });
    print(`Code to confirm ${words} in the console, within 5 minutes: ${code}`);
  }

  function isCode(session: Session, fingerprint: string, guess: string): boolean {
    const codes = currentCodes(session);
    const code = codes.get(fingerprint);
    if (code === undefined || !isDigestOf(code.digest, guess)) return false;
    codes.delete(fingerprint);
    return true;
  }

  return {
    check(session, { fingerprint, words, presented }) {
      if (presented === undefined) {
        if (!hasKey) printCode(session, fingerprint, words);
        return "needed";
      }
      if (hasKey ? isKey(presented) : isCode(session, fingerprint, presented.trim())) {
        session.wrongConfirmations = 0;
        return "confirmed";
      }
      session.wrongConfirmations += 1;
      return "wrong";
    },
  };
}
