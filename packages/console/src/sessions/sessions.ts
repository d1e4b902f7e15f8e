import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { digestOf, isDigestOf } from "@coinslot/facilitator";
import type { Session } from "./session.ts";

/** The sessions of a console, in the memory of its process. */
export interface Sessions {
  /** Opens a session. Both halves are shown once. */
  open(terms: Pick<Session, "role" | "holder" | "signedInBy">): {
    session: Session;
    cookie: string;
    token: string;
  };
  /** The open session of a cookie's value. A request of a person prolongs it. */
  find(cookie: string, options?: { isBackground: boolean }): Session | undefined;
  /** Whether the token is the other half of this session. */
  holdsToken(session: Session, token: string): boolean;
  isOpen(session: Session): boolean;
  expiresAtMs(session: Session): number;
  end(session: Session): void;
  /** Ends all, or those of one credential's holders. */
  endAll(holder?: Session["holder"]): void;
}

export interface SessionTimes {
  idleMs: number;
  maxAgeMs: number;
}

interface Kept {
  session: Session;
  tokenDigest: Buffer;
}

/** Of operators, and of readers. Beyond it, the one of them that was silent for longest ends. */
const maxSessions = 64;
/** A clock that was set back by more would prolong sessions. */
const maxSkewMs = 60_000;

/** Creates the store. A forged cookie fails its signature, and costs no look-up. */
export function createSessions(options: SessionTimes & { now: () => number }): Sessions {
  const { now, idleMs, maxAgeMs } = options;
  const signingKey = randomBytes(32);
  const kept = new Map<string, Kept>();

  function isCurrent({ seenAtMs, createdAtMs }: Session): boolean {
    const idle = now() - seenAtMs;
    return idle > -maxSkewMs && idle < idleMs && now() - createdAtMs < maxAgeMs;
  }

  function drop(isDropped: (session: Session) => boolean): void {
    for (const [id, { session }] of kept) if (isDropped(session)) kept.delete(id);
  }

  function sign(id: string): Buffer {
    return createHmac("sha256", signingKey).update(id).digest();
  }

  return {
    open({ role, holder, signedInBy }) {
      drop((session) => !isCurrent(session));
      // Readers end no operator's session by theirs.
      const [oldest, ...others] = [...kept.values()]
        .map(({ session }) => session)
        .filter((session) => session.holder === holder)
        .sort((one, other) => one.seenAtMs - other.seenAtMs);
      if (others.length + 1 >= maxSessions) drop((session) => session === oldest);
      const id = draw();
      const token = draw();
      const session: Session = {
        ...{ name: randomBytes(4).toString("hex"), role, holder, signedInBy },
        ...{ createdAtMs: now(), seenAtMs: now(), wrongConfirmations: 0, refundedMicros: 0n },
      };
      kept.set(id, { session, tokenDigest: digestOf(token) });
      return { session, token, cookie: `${id}.${sign(id).toString("base64url")}` };
    },
    find(cookie, { isBackground } = { isBackground: true }) {
      const [id = "", mac = ""] = cookie.split(".");
      const presented = Buffer.from(mac, "base64url");
      const expected = sign(id);
      if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return;
      const session = kept.get(id)?.session;
      if (session === undefined) return;
      if (!isCurrent(session)) {
        kept.delete(id);
        return;
      }
      if (!isBackground) session.seenAtMs = now();
      return session;
    },
    holdsToken(session, token) {
      const found = [...kept.values()].find((each) => each.session === session);
      return found !== undefined && isDigestOf(found.tokenDigest, token);
    },
    isOpen(session) {
      return isCurrent(session) && [...kept.values()].some((each) => each.session === session);
    },
    expiresAtMs: ({ createdAtMs, seenAtMs }) => Math.min(createdAtMs + maxAgeMs, seenAtMs + idleMs),
    end(session) {
      drop((each) => each === session);
    },
    endAll(holder) {
      drop((session) => holder === undefined || session.holder === holder);
    },
  };
}

function draw(): string {
  return randomBytes(32).toString("base64url");
}
