import type * as z from "zod";
import { badRequest } from "./api-error.ts";

/** Checks the input of a caller. @throws ApiError 400 that names each wrong part. */
export function readInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  whole: string,
): z.output<Schema> {
  const read = schema.safeParse(input);
  if (read.success) return read.data;
  throw badRequest(describeIssues(read.error, whole));
}

/** One sentence for each issue; `whole` names the input where it is wrong altogether. */
function describeIssues({ issues }: z.ZodError, whole: string): string {
  const sentences = issues.map(({ path, message }) => `${namePath(path) || whole}: ${message}`);
  return [...new Set(sentences)].slice(0, 10).join("; ");
}

function namePath(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}
