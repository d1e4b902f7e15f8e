import type { Request } from "express";
import type { MaybePromise } from "../maybe-promise.ts";

/** A request in the form that `unpaidResponseBody` receives, which is that of the reference. */
export interface UnpaidContext {
  adapter: {
    getHeader(name: string): string | undefined;
    getMethod(): string;
    getPath(): string;
    getUrl(): string;
    getAcceptHeader(): string;
    getUserAgent(): string;
    getQueryParams(): Record<string, string | string[]>;
    getQueryParam(name: string): string | string[] | undefined;
    getBody(): unknown;
  };
  path: string;
  method: string;
}

/** Body of the answer to an unpaid request: text and bytes as they are, plain values as JSON. */
export interface UnpaidBody {
  contentType: string;
  body: unknown;
}

/** Writes the body of the answer to an unpaid request; `undefined` leaves it to the middleware. */
export type UnpaidResponseBody = (context: UnpaidContext) => MaybePromise<UnpaidBody | undefined>;

/** Converts a request to the form of functions that were written for the reference. */
export function unpaidContextOf(request: Request): UnpaidContext {
  const { path, method, originalUrl, protocol, headers } = request;
  const query = (): Record<string, string | string[]> => {
    const [, text] = /\?(.*)$/.exec(originalUrl) ?? [];
    const parameters = new URLSearchParams(text);
    const names = [...new Set(parameters.keys())];
    return Object.fromEntries(
      names.map((name) => {
        const values = parameters.getAll(name);
        return [name, values.length === 1 ? (values[0] ?? "") : values];
      }),
    );
  };
  return {
    adapter: {
      getHeader: (name) => request.get(name),
      getMethod: () => method,
      getPath: () => path,
      getUrl: () => `${protocol}://${headers.host}${originalUrl}`,
      getAcceptHeader: () => headers.accept ?? "",
      getUserAgent: () => headers["user-agent"] ?? "",
      getQueryParams: query,
      getQueryParam: (name) => query()[name],
      getBody: () => request.body,
    },
    path,
    method,
  };
}
