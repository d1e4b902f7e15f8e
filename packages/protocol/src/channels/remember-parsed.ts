import * as z from "zod";
import { freezeMessage } from "../x402/frozen-message.ts";

/**
 * A schema that remembers its results by the JSON of their input, and freezes them. A buyer sends
 * the same config and the same terms with each request. Reading them takes longer than writing
 * them.
 *
 * @param options.size results that are remembered, at most; the oldest is forgotten
 */
export function rememberParsed<Output>(
  schema: z.ZodType<Output>,
  { size }: { size: number },
): z.ZodType<Output> {
  const known = new Map<string, Output>();
  return z.unknown().transform((value, context) => {
    const text = textOf(value);
    const found = text === undefined ? undefined : known.get(text);
    if (found !== undefined) return found;
    const parsed = schema.safeParse(value);
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues) {
        context.addIssue({ code: "custom", path, message });
      }
      return z.NEVER;
    }
    const result = freezeMessage(parsed.data);
    if (text === undefined) return result;
    known.set(text, result);
    const [oldest] = known.keys();
    if (known.size > size && oldest !== undefined) known.delete(oldest);
    return result;
  });
}

/** `undefined` for a value that is none of JSON, such as a bigint. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
