import type { ErrorRequestHandler, RequestHandler, Response } from "express";
import type { IndexerLogger } from "../logger.ts";
import { ChainStoppedError } from "../query/chain-stopped-error.ts";
import { ApiError } from "./api-error.ts";

/** Answers with an error in JSON: status, reason and message, and never internal details. */
function answerError(response: Response, error: ApiError): void {
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  if (error.retryAfterSeconds !== undefined) {
    response.setHeader("Retry-After", String(error.retryAfterSeconds));
  }
  response.removeHeader("Link");
  response.status(error.status).json(error.toBody());
}

/** Answers 404 in JSON: the last handler of an app. */
export const answerNotFound: RequestHandler = function answerNotFound(request) {
  throw new ApiError(404, `Unknown endpoint: ${request.method} ${request.baseUrl}${request.path}.`);
};

/**
 * Turns any thrown value into the one shape of errors. A fault that is not the caller's is logged
 * in full, and answered by a 500 without details.
 */
export function createErrorHandler(logger: IndexerLogger): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  return function answerThrown(error: unknown, request, response, _next) {
    const answer = toApiError(error);
    if (answer.status >= 500) {
      logger.error({ error, method: request.method, path: request.path }, "request failed");
    }
    // A stream that has begun can only be cut, so that no reader takes the part for the whole.
    if (response.headersSent) response.destroy();
    else answerError(response, answer);
  };
}

/**
 * Reads errors of handlers, of Express and of its body parser. A database or a chain that is away
 * is a passing fault.
 */
function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ChainStoppedError)
    return new ApiError(500, error.message, { retryAfterSeconds: 60, cause: error });
  const isPassing = error instanceof Error && "retryable" in error && error.retryable === true;
  const serverError = isPassing
    ? new ApiError(500, "The service cannot answer at the moment: try again soon.", {
        retryAfterSeconds: 1,
        cause: error,
      })
    : new ApiError(500, "The server could not answer. It is not your request.", { cause: error });
  if (!(error instanceof Error) || !("status" in error)) return serverError;
  switch (error.status) {
    case 400:
      return new ApiError(400, describeBodyError(error));
    case 413:
      return new ApiError(413, "The body is too large.");
    case 415:
      return new ApiError(415, "The body must be JSON in UTF-8.");
    default:
      return serverError;
  }
}

function describeBodyError(error: Error): string {
  if (error instanceof URIError) return "The path has a malformed percent-encoding.";
  const type = "type" in error ? error.type : undefined;
  if (type === "entity.parse.failed") return "The body is not valid JSON.";
  return "The request is malformed.";
}
