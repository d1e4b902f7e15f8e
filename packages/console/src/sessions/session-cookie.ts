import type { IncomingMessage, ServerResponse } from "node:http";
import type { Place } from "../place/read-place.ts";

const plainName = "coinslot_console";
/** Another program may set cookies of the same name, on a port or a path of its own. */
const maxCandidates = 8;

/** Base path of the console, and the place of a request. */
interface CookieScope {
  place: Place;
  base: string;
}

/** The values of every cookie of the console's name. */
export function readSessionCookies({ headers }: IncomingMessage, { origin }: Place): string[] {
  const name = cookieName(origin);
  return (headers.cookie ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .slice(0, maxCandidates)
    .map((pair) => pair.slice(name.length + 1));
}

/** Hands the cookie over. `value` is `undefined` to delete it. */
export function writeSessionCookie(
  response: ServerResponse,
  { place, base }: CookieScope,
  value: { text: string; maxAgeMs: number } | undefined,
): void {
  const isSecure = place.origin.startsWith("https:");
  // The prefix `__Host-` asks for the path `/`.
  const path = isSecure || base === "" ? "/" : base;
  const { text = "", maxAgeMs = 0 } = value ?? {};
  response.setHeader(
    "Set-Cookie",
    [
      `${cookieName(place.origin)}=${text}`,
      `Path=${path}`,
      `Max-Age=${Math.floor(maxAgeMs / 1_000)}`,
      "HttpOnly",
      "SameSite=Strict",
      ...(isSecure ? ["Secure"] : []),
    ].join("; "),
  );
}

function cookieName(origin: string): string {
  return origin.startsWith("https:") ? `__Host-${plainName}` : plainName;
}
