import type * as z from "zod";
import { DecodeError, type DecodeFault } from "./decode-error.ts";

/** Largest accepted payment header, in characters of base64. */
export const maxHeaderLength = 8192;

/** Largest accepted header of an answer: common HTTP clients take no more in all headers. */
export const maxAnswerHeaderLength = 16_384;

/** Room for a JSON Schema of the sold resource, which extensions carry, and no more. */
const maxDepth = 32;
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Keys with a meaning in JavaScript: harmless here, and a trap for code that copies the value. */
const reservedKeys = new Set(["__proto__", "constructor", "prototype"]);
/** NUL, which PostgreSQL cannot store, and halves of surrogate pairs, which UTF-8 cannot encode. */
const unsafeText = /[\0\u{d800}-\u{dfff}]/u;

/** Encodes a value as base64 of its JSON in UTF-8, in the standard alphabet with padding. */
export function encodeBase64Json(value: unknown): string {
  return Buffer.from(JSON.stringify(value), "utf8").toString("base64");
}

/**
 * Decodes base64 of JSON and checks it against a schema. Accepts messages of deployed clients:
 * padding may be missing, and the URL-safe alphabet is read. Of a repeated key the last one counts,
 * as everywhere in JavaScript.
 *
 * @throws DecodeError for every input that is not such a message, and nothing else.
 */
export function decodeBase64Json<T>(options: {
  /** The decoded message, as the subject of the error's sentence. */
  noun: string;
  value: string;
  schema: z.ZodType<T>;
  maxLength?: number;
}): T {
  const { noun, schema } = options;
  return parseShape({ noun, value: decodeBase64Value(options), schema });
}

/**
 * Decodes base64 of JSON whose schema depends on its content: `parseShape` reads the value.
 *
 * @throws DecodeError for every input that is not such a message, and nothing else.
 */
export function decodeBase64Value(options: {
  noun: string;
  value: string;
  maxLength?: number | undefined;
}): unknown {
  const { noun, value, maxLength = maxHeaderLength } = options;
  if (value.length > maxLength) throw new DecodeError(noun, "too_large");
  return parseJson(noun, decodeUtf8(noun, decodeBase64(noun, value.trim())));
}

/**
 * Checks a parsed value against a schema. First rejects content that no valid message contains:
 * excessive depth, reserved keys, unstorable text, numbers that JSON cannot express.
 *
 * @throws DecodeError when the value does not fit, and nothing else.
 */
export function parseShape<T>(options: { noun: string; value: unknown; schema: z.ZodType<T> }): T {
  const { noun, value, schema } = options;
  const fault = faultIn(value, maxDepth);
  if (fault !== undefined) throw new DecodeError(noun, fault);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path.map(String).join(".") ?? "";
  throw new DecodeError(noun, "wrong_shape", /^[\w.:-]{0,80}$/.test(path) ? path : "");
}

function decodeBase64(noun: string, value: string): Uint8Array {
  const isBase64 = base64.test(value) && value.replace(/={1,2}$/, "").length % 4 !== 1;
  if (value === "" || !isBase64) throw new DecodeError(noun, "not_base64");
  return Buffer.from(value, "base64");
}

function decodeUtf8(noun: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new DecodeError(noun, "not_utf8");
  }
}

function parseJson(noun: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DecodeError(noun, "not_json");
  }
}

function faultIn(value: unknown, depth: number): DecodeFault | undefined {
  if (typeof value === "string") return unsafeText.test(value) ? "unsafe_content" : undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "unsafe_content";
  if (typeof value !== "object" || value === null) return undefined;
  if (depth === 0) return "too_deep";
  for (const key of Object.keys(value)) {
    if (reservedKeys.has(key) || unsafeText.test(key)) return "unsafe_content";
    const fault = faultIn(Reflect.get(value, key), depth - 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
