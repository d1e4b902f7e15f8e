import type { ConsoleContext } from "../context.ts";
import { isCrossOrigin } from "../place/is-same-origin.ts";
import { readVisitor, type Visit } from "../visit.ts";
import { sendJson } from "./answer.ts";
import { describeApi } from "./openapi.ts";
import { RefusedError, refusals } from "./refusal.ts";
import { runOperation } from "./run-operation.ts";
import { askForLink, endSessions, openSession, showSession } from "./session-endpoints.ts";

/** Operations of the console itself: a session would forge entries of the audit log. */
const unserved: readonly string[] = ["audit.record"];

/** Answers a request below `/api`. @throws RefusedError */
export async function answerApi(context: ConsoleContext, visit: Visit): Promise<void> {
  const { path, request } = visit;
  switch (`${request.method} ${path}`) {
    case "GET /api/session":
      return showSession(context, visit);
    case "POST /api/session":
      return openSession(context, visit);
    case "POST /api/session/link":
      return askForLink(context, visit);
    case "DELETE /api/session":
      return endSessions(context, visit, "own");
    case "DELETE /api/sessions":
      return endSessions(context, visit, "all");
    case "GET /api/events":
      return openEvents(context, visit);
    case "GET /api/openapi.json":
      return sendJson(visit.response, 200, describeApi(servedBy(context), visit.base));
    default:
      return answerOperation(context, visit);
  }
}

function answerOperation(context: ConsoleContext, visit: Visit): Promise<void> {
  const { path, request } = visit;
  if (request.method !== "POST") throw new RefusedError(refusals.unknownPath);
  const operation = context.operations.get(path.slice("/api/".length));
  if (operation === undefined || unserved.includes(operation.name)) {
    throw new RefusedError(refusals.unknownOperation);
  }
  return runOperation(context, visit, operation);
}

/** The cookie alone is enough: events name no payment, and `EventSource` sends no header. */
function openEvents(context: ConsoleContext, visit: Visit): void {
  if (isCrossOrigin(visit.request, visit.place)) throw new RefusedError(refusals.crossOrigin);
  const { session, role } = readVisitor(context, visit);
  if (session === undefined && role === "none") throw new RefusedError(refusals.signInNeeded);
  context.events.open(visit.response, session);
}

function servedBy({ operations }: ConsoleContext) {
  return [...operations.values()].filter(({ name }) => !unserved.includes(name));
}
