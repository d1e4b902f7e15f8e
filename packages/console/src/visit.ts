import type { IncomingMessage, ServerResponse } from "node:http";
import { RefusedError, refusals } from "./api/refusal.ts";
import type { ConsoleContext } from "./context.ts";
import { isSameOrigin } from "./place/is-same-origin.ts";
import type { Place } from "./place/read-place.ts";
import type { Role, Session } from "./sessions/session.ts";
import { readSessionCookies } from "./sessions/session-cookie.ts";

/** A request at a known place, and its answer. */
export interface Visit {
  request: IncomingMessage;
  response: ServerResponse;
  place: Place;
  /** Path of the mount: "" or `/_coinslot`. */
  base: string;
  /** Path below the mount. */
  path: string;
  query: URLSearchParams;
}

/** A visitor: with a session, with its token, too, or without both. */
export interface Visitor {
  role: Role;
  session: Session | undefined;
  /** The request has the other half of the session. */
  hasToken: boolean;
}

const tokenHeader = "x-coinslot-token";
const backgroundHeader = "x-coinslot-background";

/** Finds out who asks. Without the token, a session's role does not count. */
export function readVisitor(
  { settings, sessions, admit }: ConsoleContext,
  { request, place }: Visit,
): Visitor {
  const isBackground = request.headers[backgroundHeader] !== undefined || request.method === "GET";
  const session = readSessionCookies(request, place)
    .map((cookie) => sessions.find(cookie, { isBackground }))
    .find((found) => found !== undefined);
  const token = request.headers[tokenHeader];
  const hasToken =
    session !== undefined && typeof token === "string" && sessions.holdsToken(session, token);
  // A cookie alone may be stolen: it has the room of readers.
  if (session !== undefined) admit(request.socket, hasToken ? session.holder : "reader");
  if (session !== undefined && hasToken) return { role: session.role, session, hasToken };
  const mayRead = settings.readOnLoopback && place.isLoopback;
  return { role: mayRead ? "reader" : "none", session, hasToken };
}

/** @throws RefusedError unless a page of this origin has sent the request, with a token */
export function requireOwnPage({ request, place }: Visit): void {
  if (!isSameOrigin(request, place)) throw new RefusedError(refusals.crossOrigin);
  if (request.headers[tokenHeader] === undefined) throw new RefusedError(refusals.tokenNeeded);
}
