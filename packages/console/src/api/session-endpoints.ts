import * as z from "zod";
import type { ConsoleContext } from "../context.ts";
import type { Session } from "../sessions/session.ts";
import { writeSessionCookie } from "../sessions/session-cookie.ts";
import { printLink } from "../sign-in/print-link.ts";
import { readVisitor, requireOwnPage, type Visit } from "../visit.ts";
import { sendJson } from "./answer.ts";
import { readJson } from "./read-json.ts";
import { RefusedError, refusals } from "./refusal.ts";

const maxBytes = 2 ** 10;
const secret = z.string().min(1).max(512);
/** Body of `POST /api/session`. */
const credentialSchema = z.union([
  z.strictObject({ link: secret }),
  z.strictObject({ key: secret }),
]);

/** `GET /api/session`: the role, and the ways to another. */
export function showSession(context: ConsoleContext, visit: Visit): void {
  const { session, role, hasToken } = readVisitor(context, visit);
  sendJson(visit.response, 200, {
    role,
    session: session && { ...describe(context, session), isTokenValid: hasToken },
    ...capabilitiesOf(context),
  });
}

/** `POST /api/session`: signs in. */
export async function openSession(context: ConsoleContext, visit: Visit): Promise<void> {
  requireOwnPage(visit);
  const { request, response, place, base } = visit;
  const credential = credentialSchema.safeParse(await readJson(request, maxBytes));
  if (!credential.success) {
    throw new RefusedError(refusals.malformed("Send either a link or a key."));
  }
  const outcome = context.signIn.try(credential.data, request.socket.remoteAddress);
  const means = "link" in credential.data ? "link" : "key";
  context.recordSession({
    operation: "session.open",
    argument: { means, address: request.socket.remoteAddress ?? "unknown" },
    ...(outcome.kind === "open"
      ? { outcome: "done" as const, session: outcome.session }
      : { outcome: "refused" as const, code: outcome.kind }),
  });
  switch (outcome.kind) {
    case "link_used":
      throw new RefusedError(refusals.linkUsed);
    case "wrong_key":
      throw new RefusedError(refusals.wrongKey);
    case "too_many_attempts":
      throw new RefusedError(refusals.tooManyAttempts);
    case "open": {
      const { session, token, cookie } = outcome;
      const { maxAgeMs } = context.settings;
      writeSessionCookie(response, { place, base }, { text: cookie, maxAgeMs });
      sendJson(response, 200, {
        role: session.role,
        token,
        session: { ...describe(context, session), isTokenValid: true },
        ...capabilitiesOf(context),
      });
    }
  }
}

/** `POST /api/session/link`: prints a fresh link, where the operator of the machine sees it. */
export function askForLink(context: ConsoleContext, visit: Visit): void {
  requireOwnPage(visit);
  const { links, settings, mayAct } = context;
  const address = `${visit.place.linkOrigin}${visit.base}`;
  printLink({ links, print: settings.print, address, mayAct });
  sendJson(visit.response, 202, {});
}

/** `DELETE /api/session` and `DELETE /api/sessions`: ends this session, or all of them. */
export function endSessions(context: ConsoleContext, visit: Visit, scope: "own" | "all"): void {
  requireOwnPage(visit);
  const { session, hasToken } = readVisitor(context, visit);
  if (session === undefined || !hasToken) throw new RefusedError(refusals.signInNeeded);
  // A reader ends those of readers.
  if (scope === "all") context.sessions.endAll(session.holder === "reader" ? "reader" : undefined);
  context.sessions.end(session);
  const argument = { which: scope, address: visit.request.socket.remoteAddress ?? "unknown" };
  context.recordSession({ operation: "session.close", outcome: "done", session, argument });
  writeSessionCookie(visit.response, visit, undefined);
  visit.response.writeHead(204).end();
}

function describe({ sessions, settings }: ConsoleContext, session: Session) {
  return {
    name: session.name,
    signedInBy: session.signedInBy,
    expiresAt: new Date(sessions.expiresAtMs(session)).toISOString(),
    idleSeconds: settings.idleMs / 1_000,
  };
}

/** The ways to sign in and to confirm, and whether sessions may act. */
function capabilitiesOf({ settings, mayAct }: ConsoleContext) {
  const hasKey = settings.key !== undefined;
  return {
    mayAct,
    signIn: { link: true, key: hasKey || settings.readerKey !== undefined },
    confirmation: hasKey ? "key" : "code",
  };
}
