import type { z } from "zod";
import { DecodeError } from "./decode-error.ts";

/** Largest header value that we read or write, in characters of base64. */
export const maxHeaderLength = 8192;

const maxDepth = 12;
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Encodes a value as base64 of its JSON in UTF-8, in the standard alphabet with padding. */
export function encodeBase64Json(value: unknown): string {
  return Buffer.from(JSON.stringify(value), "utf8").toString("base64");
}

/**
 * Decodes base64 of JSON and checks it against a schema. Reads what clients in the field send:
 * padding may be missing, and the URL-safe alphabet is accepted.
 *
 * @throws DecodeError for every input that is not such a message, and nothing else.
 */
export function decodeBase64Json<T>(options: {
  /** What is decoded, as the subject of the error's sentence. */
  noun: string;
  value: string;
  schema: z.ZodType<T>;
  maxLength?: number;
}): T {
  const { noun, schema, maxLength = maxHeaderLength } = options;
  const value = options.value.trim();
  if (value.length > maxLength) throw new DecodeError(noun, "too_large");
  const unpadded = value.replace(/=+$/, "").length;
  if (value === "" || !base64.test(value) || unpadded % 4 === 1) {
    throw new DecodeError(noun, "not_base64");
  }
  const bytes = Buffer.from(value, "base64");
  return parseJson({ noun, text: decodeUtf8(noun, bytes), schema });
}

/**
 * Parses JSON text and checks it against a schema.
 *
 * @throws DecodeError for every text that is not such a message, and nothing else.
 */
export function parseJson<T>(options: { noun: string; text: string; schema: z.ZodType<T> }): T {
  const { noun, text, schema } = options;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new DecodeError(noun, "not_json");
  }
  return parseShape({ noun, value: json, schema });
}

/**
 * Checks a parsed value against a schema, after bounding its depth.
 *
 * @throws DecodeError when the value does not fit, and nothing else.
 */
export function parseShape<T>(options: { noun: string; value: unknown; schema: z.ZodType<T> }): T {
  const { noun, value, schema } = options;
  if (!isShallow(value, maxDepth)) throw new DecodeError(noun, "too_deep");
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path.map(String).join(".") ?? "";
  throw new DecodeError(noun, "wrong_shape", /^[\w.:-]{0,80}$/.test(path) ? path : "");
}

function decodeUtf8(noun: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new DecodeError(noun, "not_utf8");
  }
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth === 0) return false;
  return Object.values(value).every((child) => isShallow(child, depth - 1));
}
