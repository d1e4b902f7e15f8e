import type { Request, Response } from "express";
import type * as z from "zod";
import type { Caller } from "./access.ts";
import type { StoredKey } from "./keys/key-store.ts";
import { readQueryString } from "./query-string.ts";
import { readInput } from "./read-input.ts";

/** An admitted request. */
export interface Call {
  request: Request;
  response: Response;
  caller: Caller;
}

export function readParams<Schema extends z.ZodType>(schema: Schema, { params }: Request) {
  return readInput(schema, params, "path");
}

export function readQuery<Schema extends z.ZodType>(schema: Schema, { originalUrl }: Request) {
  return readInput(schema, readQueryString(originalUrl), "query");
}

/** The operations on keys and webhooks exist only where keys are required. */
export function requireOwner({ key }: Caller): StoredKey {
  if (key === undefined) throw new Error("An operation of an owner was called without a key.");
  return key;
}

/**
 * Links to the same request from a place on, if there is one: as a path, since proxies change the
 * rest (RFC 8288).
 */
export function linkToNext(
  { request, response }: Call,
  name: string,
  place: string | undefined,
): void {
  if (place === undefined) return;
  const { pathname, searchParams } = new URL(request.originalUrl, "http://localhost");
  searchParams.set(name, place);
  response.setHeader("Link", `<${pathname}?${searchParams}>; rel="next"`);
}
