import type { Operation } from "@coinslot/facilitator";
import * as z from "zod";
import { requireConfirmation } from "../acts/require-confirmation.ts";
import { accountOf } from "../audit/record-session.ts";
import type { ConsoleContext } from "../context.ts";
import { readVisitor, requireOwnPage, type Visit, type Visitor } from "../visit.ts";
import { sendJson } from "./answer.ts";
import { readJson } from "./read-json.ts";
import { RefusedError, refusals } from "./refusal.ts";

const defaultMaxBytes = 16 * 2 ** 10;
const idempotencyKeyForm = /^[\x21-\x7e]{16,128}$/;

/** `POST /api/<operation>`. @throws RefusedError, and the errors of the operation */
export async function runOperation(
  context: ConsoleContext,
  visit: Visit,
  operation: Operation,
): Promise<void> {
  const { request, response } = visit;
  requireOwnPage(visit);
  const visitor = requireRole(readVisitor(context, visit), operation);
  const json = await readJson(request, operation.maxArgumentBytes ?? defaultMaxBytes);
  const { session } = visitor;
  if (session !== undefined && !context.sessions.isOpen(session)) {
    throw new RefusedError(refusals.signInNeeded);
  }
  if (operation.access === "read") {
    requireArgument(operation, json);
    return sendJson(response, 200, await context.operator.run(operation, json));
  }
  const { result, isReplay } = await act(context, { visit, visitor, operation, json });
  if (isReplay) response.setHeader("Idempotency-Replayed", "true");
  sendJson(response, 200, result);
}

interface ActRequest {
  visit: Visit;
  visitor: Visitor;
  operation: Operation;
  json: unknown;
}

async function act(context: ConsoleContext, { visit, visitor, operation, json }: ActRequest) {
  const { headers } = visit.request;
  const { session } = visitor;
  if (session === undefined) throw new RefusedError(refusals.signInNeeded);
  const { "idempotency-key": key = "", "x-coinslot-confirmation": presented } = headers;
  if (typeof key !== "string" || !idempotencyKeyForm.test(key)) {
    const message = "An act has an Idempotency-Key: 16 to 128 characters, drawn for it.";
    throw new RefusedError(refusals.malformed(message));
  }
  const argument = withKey(operation, json, key);
  requireArgument(operation, argument);
  const { name } = operation;
  return context.keptActs.run({ operation: name, argument, key }, async () => {
    const confirmation = typeof presented === "string" ? presented : undefined;
    const asked = { operation: name, argument, presented: confirmation };
    await requireConfirmation(context, session, asked);
    const words = { account: accountOf(session), idempotencyKey: key };
    return context.operator.run(operation, argument, words);
  });
}

/** A cookie alone is no session, and a role without a session reads at most. */
function requireRole(visitor: Visitor, { access }: Operation): Visitor {
  if (visitor.role === "none") throw new RefusedError(refusals.signInNeeded);
  if (access !== "read" && visitor.role !== "operator") {
    const { session } = visitor;
    throw new RefusedError(session === undefined ? refusals.signInNeeded : refusals.roleNeeded);
  }
  return visitor;
}

/** Fills the key of the header into an argument that has one, so that the ledger knows it, too. */
function withKey({ argument }: Operation, json: unknown, key: string): unknown {
  const hasKey = argument instanceof z.ZodObject && "idempotencyKey" in argument.shape;
  if (!hasKey || typeof json !== "object" || json === null) return json;
  return { ...json, idempotencyKey: key };
}

function requireArgument({ argument: schema }: Operation, json: unknown): void {
  const { error } = schema.safeParse(json);
  if (error === undefined) return;
  const message = `The argument is malformed: ${z.prettifyError(error)}`;
  throw new RefusedError(refusals.malformed(message));
}
