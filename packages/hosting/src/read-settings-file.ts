import { readFileSync } from "node:fs";
import { Lexer, Parser, parse } from "yaml";
import * as z from "zod";

/** Lists and mappings in one another. A deep file stops `parse`, or the process by its stack. */
const maxLevels = 64;

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
  let text = "";
  let content: unknown;
  try {
    text = readFileSync(path, "utf8");
    if (isTooDeep(text)) {
      tell(`${path}: is nested too deeply: at most ${maxLevels} levels`);
      return {};
    }
    // Its warnings would print lines of the file, on their own way to the terminal. Pretty errors
    // copy the line for each of them.
    content = parse(text, { logLevel: "error", prettyErrors: false });
  } catch (error) {
    tell(`${path}: cannot be read as YAML or JSON${describePlace(error, text)}`);
    return {};
  }
  const read = documentSchema.safeParse(content);
  if (read.success) return read.data ?? {};
  tell(`${path}: must be a mapping with keys such as ${keys}`);
  return {};
}

/** The first step of `parse` alone. It keeps a stack of open collections, and does not recurse. */
function isTooDeep(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // Documents that end with the lexeme are of no use here.
    Array.from(parser.next(lexeme));
    // The lowest is the document.
    if (parser.stack.length > maxLevels + 1) return true;
  }
  return false;
}

/** The code and the line of a fault. The parser's own message may repeat the line itself. */
function describePlace(error: unknown, text: string): string {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  const pos = error instanceof Error && "pos" in error ? error.pos : undefined;
  const [start] = Array.isArray(pos) ? pos : [];
  if (typeof start !== "number" || start < 0) return code;
  return `${code}, line ${text.slice(0, start).split("\n").length}`;
}
