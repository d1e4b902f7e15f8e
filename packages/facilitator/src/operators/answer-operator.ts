import type { IncomingMessage, ServerResponse } from "node:http";
import { ConfigurationError } from "@coinslot/protocol";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import type { Logger } from "../logger.ts";
import type { Operation, OperatorContext } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";

/** The operations of a running process, and their surroundings. */
export interface ServedOperations {
  operations: readonly Operation[];
  context: OperatorContext;
  /** Runs a read apart from those of buyers. */
  read<Result>(work: (reads: LedgerReads) => Promise<Result>): Promise<Result>;
  logger: Logger;
}

interface Answer {
  status: number;
  body: unknown;
}

const defaultMaxBytes = 16 * 2 ** 10;

/** Answers `POST /<operation>`. Never rejects: the log has what failed, and the answer that it did. */
export async function answerOperator(
  served: ServedOperations,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const { status, body } = await perform(served, request);
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

async function perform(served: ServedOperations, request: IncomingMessage): Promise<Answer> {
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
    return { status: 200, body: await run(served, operation, argument.data) };
  } catch (error) {
    if (error instanceof OperationRefusedError) {
      return { status: 409, body: { message: error.message, code: error.code } };
    }
    if (error instanceof ConfigurationError)
      return { status: 400, body: { message: error.message, code: "malformed" } };
    throw error;
  }
}

async function run(
  { context, read }: ServedOperations,
  operation: Operation,
  argument: unknown,
): Promise<unknown> {
  switch (operation.access) {
    case "read":
      return read((reads) => operation.run(reads, argument));
    case "write":
      return operation.run(context, argument);
    case "seller":
      if (context.seller !== undefined) return operation.run(context.seller, argument);
      throw new OperationRefusedError("no_seller", "This process does not sell.");
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
