import type { Request, RequestHandler, Response } from "express";
import { ApiError } from "./api-error.ts";

/** A batch of ten histories with every field is under 2 KiB. */
export const maxBodyBytes = 65_536;

/**
 * Reads the body of a request as JSON with Express' own parser, unless an app around has read it
 * already.
 * @throws ApiError 415 if it is of another type, and what the parser throws, see
 * `createErrorHandler`
 */
export async function readJsonBody(
  request: Request,
  response: Response,
  parse: RequestHandler,
): Promise<unknown> {
  // Not `request.is`, which takes a request without a body for one without a type.
  const [type = ""] = (request.get("content-type") ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new ApiError(415, "Send JSON, with the header content-type: application/json.");
  }
  await new Promise<void>((resolve, reject) => {
    void parse(request, response, (error?: unknown) => (error ? reject(error) : resolve()));
  });
  return request.body;
}
