import { validateHeaderValue } from "node:http";
import { isRecord } from "../is-record.ts";

/** The body of an unpaid answer, as it goes out. */
export interface UnpaidBytes {
  contentType: string;
  body: Buffer;
}

/**
 * Reads the result of a seller's function for an unpaid request. Text and bytes go out as they are,
 * plain values as JSON. No other value goes out: a stream written as JSON would show its inner
 * state.
 *
 * @returns the reason why it is unusable, in words that repeat nothing of it
 */
export function readUnpaidBody(
  answer: unknown,
): { ok: true; answer: UnpaidBytes } | { ok: false; problem: string } {
  if (!isRecord(answer)) return { ok: false, problem: "no { contentType, body }" };
  const { contentType } = answer;
  if (!isContentType(contentType)) return { ok: false, problem: "no contentType for a header" };
  const body = toBytes(answer.body);
  if (body === undefined) {
    return { ok: false, problem: "a body that is not text, bytes or plain JSON" };
  }
  return { ok: true, answer: { contentType, body } };
}

function isContentType(value: unknown): value is string {
  if (typeof value !== "string" || value === "") return false;
  try {
    validateHeaderValue("Content-Type", value);
    return true;
  } catch {
    return false;
  }
}

function toBytes(body: unknown): Buffer | undefined {
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  if (!isPlain(body)) return undefined;
  try {
    return Buffer.from(JSON.stringify(body));
  } catch {
    return undefined;
  }
}

function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "number" || typeof value === "boolean") return true;
  if (typeof value !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}
