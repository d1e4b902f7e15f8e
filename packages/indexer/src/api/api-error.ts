import { STATUS_CODES } from "node:http";
import type { ErrorBody } from "./wire/error.ts";

export interface ApiErrorOptions {
  /** Seconds until a retry. */
  retryAfterSeconds?: number | undefined;
  /** Further headers of the answer. */
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/** An answer of the API that is an error: thrown by handlers, and by clients that receive one. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The reason phrase of the status, such as `Bad Request`. */
  readonly error: string;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.status = status;
    this.error = STATUS_CODES[status] ?? "Error";
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
  }

  /** The same request may succeed later: after a 429, and after a fault of the server. */
  get retryable(): boolean {
    return this.status === 429 || this.status >= 500;
  }

  /** The body as it is on the wire. */
  toBody(): ErrorBody {
    return { error: this.error, message: this.message, status: this.status };
  }
}

/** A 400: the request is wrong. */
export function badRequest(message: string): ApiError {
  return new ApiError(400, message);
}
