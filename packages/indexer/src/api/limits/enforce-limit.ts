import type { HitCounter } from "@coinslot/storage";
import type { Response } from "express";
import { ApiError } from "../api-error.ts";
import type { Limit } from "./limit.ts";

/** The caller, the operation and the limit. */
export interface LimitedRequest {
  counter: HitCounter;
  /** The operation: the name of the policy in the headers, and a part of the counter's key. */
  operation: string;
  /** The key or the address that is counted. */
  caller: string;
  limit: Limit;
}

/**
 * Counts a request and writes the headers `RateLimit-Policy` and `RateLimit`. Source: the IETF
 * draft "RateLimit header fields for HTTP", version 8 on. They name the quota, the window, the
 * remaining requests and for how long, in seconds.
 *
 * A small limiter of our own, because the window belongs to the key. The well-kept middlewares have
 * one window for all callers. When the store fails, they admit every request or none.
 *
 * @throws ApiError 429 with Retry-After
 */
export async function enforceLimit(response: Response, request: LimitedRequest): Promise<void> {
  const { counter, operation, caller, limit } = request;
  const hits = await counter.hit(`${operation} ${caller}`, limit.windowMs);
  const resetSeconds = Math.max(1, Math.ceil(hits.resetsInMs / 1_000));
  const remaining = Math.max(0, limit.max - hits.count);
  response.setHeader(
    "RateLimit-Policy",
    `"${operation}";q=${limit.max};w=${Math.ceil(limit.windowMs / 1_000)}`,
  );
  response.setHeader("RateLimit", `"${operation}";r=${remaining};t=${resetSeconds}`);
  if (hits.count > limit.max) throw tooMany(limit, resetSeconds);
}

/** A 429 that names the allowed rate and the time until a retry. */
export function tooMany({ max, windowMs }: Limit, retryAfterSeconds: number): ApiError {
  return new ApiError(
    429,
    `Limit exceeded: ${max} requests per ${describeDuration(windowMs)}. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}

function describeDuration(ms: number): string {
  if (ms === 3_600_000) return "hour";
  if (ms === 60_000) return "minute";
  return `${ms / 1_000} seconds`;
}
