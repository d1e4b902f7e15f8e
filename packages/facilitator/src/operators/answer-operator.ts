import type { IncomingMessage, ServerResponse } from "node:http";
import { ConfigurationError } from "@coinslot/protocol";
import * as z from "zod";
import type { OperatorCaller } from "../audit/audit-entry.ts";
import type { Logger } from "../logger.ts";
import { readCallerHeaders } from "./caller-headers.ts";
import type { Operation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";
import { type OperatorParts, performOperation } from "./perform-operation.ts";

/** The operations of a running process, and their context. */
export interface ServedOperations extends OperatorParts {
  operations: readonly Operation[];
  logger: Logger;
}

interface Answer {
  status: number;
  body: unknown;
}

const defaultMaxBytes = 16 * 2 ** 10;

/**
 * Answers `POST /<operation>`. Never rejects: the log has what failed, and the answer that it did.
 *
 * @param way the way in, and the caller that it has proven
 */
export async function answerOperator(
  served: ServedOperations,
  way: Pick<OperatorCaller, "via" | "actor">,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const { status, body } = await perform(served, way, request);
    sendAnswer(response, status, body);
  } catch (err) {
    served.logger.error({ err }, "a command of the operator failed");
    sendAnswer(response, 503, {
      message: "The seller could not do it now: its log says why.",
    });
  }
}

/** Sends JSON, and ends the connection: a peer may have sent more than was read. */
export function sendAnswer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    Connection: "close",
  });
  response.end(JSON.stringify(body));
}

async function perform(
  served: ServedOperations,
  way: Pick<OperatorCaller, "via" | "actor">,
  request: IncomingMessage,
): Promise<Answer> {
  const operation = served.operations.find(({ name }) => request.url === `/${name}`);
  if (request.method !== "POST" || operation === undefined) {
    return {
      status: 404,
      body: {
        message: "This release of the seller does not know that.",
        code: "unknown_operation",
      },
    };
  }
  const json = await readJson(request, operation.maxArgumentBytes ?? defaultMaxBytes);
  const argument = operation.argument.safeParse(json);
  if (!argument.success) {
    const message = `The argument is malformed: ${z.prettifyError(argument.error)}`;
    return { status: 400, body: { message, code: "malformed" } };
  }
  try {
    return {
      status: 200,
      body: await performOperation(served, operation, argument.data, {
        ...readCallerHeaders(request.headers),
        ...way,
      }),
    };
  } catch (error) {
    if (error instanceof OperationRefusedError) {
      return { status: 409, body: { message: error.message, code: error.code } };
    }
    if (error instanceof ConfigurationError)
      return { status: 400, body: { message: error.message, code: "malformed" } };
    throw error;
  }
}

async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Left undestroyed, so that the refusal of a body that is too large can go out.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Uint8Array)) return undefined;
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}
