import { type AttemptLimit, digestOf, isDigestOf } from "@coinslot/facilitator";
import type { Session } from "../sessions/session.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { OneTimeLinks } from "./one-time-links.ts";

/** Means of a sign-in: the token of a one-time link, or a key of the settings. */
export type Credential = { link: string } | { key: string };

export type SignInOutcome =
  | { kind: "open"; session: Session; cookie: string; token: string }
  | { kind: "link_used" | "wrong_key" | "too_many_attempts" };

export interface SignIn {
  try(credential: Credential, address: string | undefined): SignInOutcome;
  /** Whether this is the key of a role that acts. */
  isKey(guess: string): boolean;
}

/** Creates the sign-in. Where acting is off, every credential opens a session that reads. */
export function createSignIn(options: {
  key: string | undefined;
  readerKey: string | undefined;
  mayAct: boolean;
  sessions: Sessions;
  links: OneTimeLinks;
  limit: AttemptLimit;
}): SignIn {
  const { mayAct, sessions, links, limit } = options;
  const key = options.key === undefined ? undefined : digestOf(options.key);
  const readerKey = options.readerKey === undefined ? undefined : digestOf(options.readerKey);
  const highest = mayAct ? "operator" : "reader";

  function holderOf(guess: string): Session["holder"] | undefined {
    const isReader = readerKey !== undefined && isDigestOf(readerKey, guess);
    if (key !== undefined && isDigestOf(key, guess)) return "operator";
    return isReader ? "reader" : undefined;
  }

  function open({ holder, signedInBy }: Pick<Session, "holder" | "signedInBy">): SignInOutcome {
    const role = holder === "operator" ? highest : "reader";
    return { kind: "open", ...sessions.open({ role, holder, signedInBy }) };
  }

  return {
    try(credential, address) {
      if ("link" in credential) {
        if (links.redeem(credential.link)) {
          return open({ holder: "operator", signedInBy: "link" });
        }
        return { kind: limit.count(address) ? "link_used" : "too_many_attempts" };
      }
      const holder = holderOf(credential.key);
      if (holder !== undefined) return open({ holder, signedInBy: "key" });
      return { kind: limit.count(address) ? "wrong_key" : "too_many_attempts" };
    },
    isKey: (guess) => key !== undefined && isDigestOf(key, guess),
  };
}
