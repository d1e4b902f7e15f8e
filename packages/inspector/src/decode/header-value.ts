import * as z from "zod";

/** Values that stand for something that was left out. */
export const removed = "[removed]";
export const decodedBelow = "[decoded]";

const jsonSchema = z.json();
export type Json = z.infer<typeof jsonSchema>;

/**
 * Decodes base64 of JSON for display: any JSON, also where a protocol's decoder refuses it.
 *
 * @returns `undefined` for what is no base64, or no JSON
 */
export function decodeForDisplay(value: string): Json | undefined {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(value.trim())) return undefined;
  return parseJson(Buffer.from(value.trim(), "base64").toString("utf8"));
}

/** Parses JSON; `undefined` for other text. */
export function parseJson(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isShallow(value, 32) ? jsonSchema.safeParse(value).data : undefined;
  } catch {
    return undefined;
  }
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((member) => isShallow(member, depth - 1));
}
