import type * as z from "zod";
import { ApiError } from "../api-error.ts";
import { errorBody } from "../wire/error.ts";
import { ApiUnreachableError } from "./api-unreachable-error.ts";

/** Sends requests to one service. */
export interface Requester {
  /**
   * Takes a path under the service's URL, and the options of `fetch`. Follows no redirect with the
   * key: `fetch` takes `Authorization` alone out of a request to another origin.
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
      const { apiKey } = options;
      if (apiKey !== undefined) headers.set("x-api-key", apiKey);
      const redirect = apiKey === undefined ? "follow" : "manual";
      let response: Response;
      try {
        response = await options.fetch(`${base}${path}`, { redirect, ...init, headers });
      } catch (cause) {
        throw new ApiUnreachableError("The indexing service did not answer.", { cause });
      }
      if (apiKey !== undefined) await refuseRedirect(response);
      return response;
    },
  };
}

/** @throws ApiUnreachableError for a redirect, which a browser shows without its status */
async function refuseRedirect(response: Response): Promise<void> {
  const { status, type, headers, url } = response;
  const isRedirect = status > 300 && status < 400 && status !== 304;
  if (!isRedirect && type !== "opaqueredirect") return;
  await response.body?.cancel();
  const target = headers.get("location") ?? "";
  const base = url || undefined;
  const place = URL.canParse(target, base) ? new URL(target, base).origin : "elsewhere";
  throw new ApiUnreachableError(
    `The service redirects to ${place}. The key is not sent there: name the URL of the service itself.`,
  );
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
