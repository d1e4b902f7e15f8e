import type * as z from "zod";
import { ApiError } from "../api-error.ts";
import { errorBody } from "../wire/error.ts";
import { ApiUnreachableError } from "./api-unreachable-error.ts";

/** Sends requests to one service. */
export interface Requester {
  /**
   * Takes a path under the service's URL, and the options of `fetch`.
   * @throws ApiUnreachableError
   */
  send(path: string, init?: RequestInit): Promise<Response>;
}

export function createRequester(options: {
  url: string;
  apiKey: string | undefined;
  fetch: typeof fetch;
}): Requester {
  const base = options.url.replace(/\/+$/, "");
  return {
    async send(path, init = {}) {
      const headers = new Headers(init.headers);
      if (options.apiKey !== undefined) headers.set("x-api-key", options.apiKey);
      try {
        return await options.fetch(`${base}${path}`, { ...init, headers });
      } catch (cause) {
        throw new ApiUnreachableError("The indexing service did not answer.", { cause });
      }
    },
  };
}

/** Reads the body as JSON of a known shape. @throws ApiError for a refusal; ApiUnreachableError */
export async function readAnswer<Schema extends z.ZodType>(
  response: Response,
  schema: Schema,
): Promise<z.output<Schema>> {
  const body = await readBody(response);
  const answer = schema.safeParse(body);
  // The state of an unhealthy service comes with 503, and is an answer all the same.
  if (answer.success && (response.ok || response.status === 503)) return answer.data;
  if (!response.ok) throw toApiError(response, body);
  throw new ApiUnreachableError("The service's answer has not the form that it should have.", {
    cause: answer.error,
  });
}

/** @throws ApiError for any status but a success */
export async function requireSuccess(response: Response): Promise<void> {
  if (!response.ok) throw toApiError(response, await readBody(response));
}

async function readBody(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (cause) {
    if (!response.ok) return undefined;
    throw new ApiUnreachableError("The service's answer was cut, or is not JSON.", { cause });
  }
}

function toApiError(response: Response, body: unknown): ApiError {
  const told = errorBody.safeParse(body);
  const message = told.success ? told.data.message : `HTTP status ${response.status}`;
  const seconds = response.headers.get("retry-after") ?? "";
  return new ApiError(response.status, message, {
    retryAfterSeconds: /^\d{1,9}$/.test(seconds) ? Number(seconds) : undefined,
  });
}
