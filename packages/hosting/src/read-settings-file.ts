import { readFileSync } from "node:fs";
import { parse } from "yaml";
import * as z from "zod";

const documentSchema = z.record(z.string(), z.unknown()).nullish();

/**
 * Reads the settings of a YAML or JSON file.
 *
 * @param path `undefined`: there is no file, and no setting
 * @param options.keys two settings that such a file may hold, as an example
 * @param options.tell receives a problem, which repeats nothing of the file: it may hold secrets
 */
export function readSettingsFile(
  path: string | undefined,
  { keys, tell }: { keys: string; tell: (problem: string) => void },
): Record<string, unknown> {
  if (path === undefined) return {};
  let content: unknown;
  try {
    // Its warnings would print lines of the file, on their own way to the terminal.
    content = parse(readFileSync(path, "utf8"), { logLevel: "error" });
  } catch (error) {
    tell(`${path}: cannot be read as YAML or JSON${describePlace(error)}`);
    return {};
  }
  const read = documentSchema.safeParse(content);
  if (read.success) return read.data ?? {};
  tell(`${path}: must be a mapping with keys such as ${keys}`);
  return {};
}

/** The code and the line of a fault. The parser's own message repeats the line itself. */
function describePlace(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  const linePos = error instanceof Error && "linePos" in error ? error.linePos : undefined;
  const [start] = Array.isArray(linePos) ? linePos : [];
  return typeof start?.line === "number" ? `${code}, line ${start.line}` : code;
}
