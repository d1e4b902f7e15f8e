import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { findDocuments, root } from "./code-block.ts";

/** Prose of a comment, a paragraph, a list's item or a table's cell: lines joined by spaces. */
export interface Passage {
  /** Path from the root of the repository. */
  path: string;
  /** Its first line, counted from 1. */
  number: number;
  text: string;
}

/** A line of a comment, without its marks. `text` is undefined outside prose. */
interface CommentLine {
  path: string;
  number: number;
  line: string;
  text: string | undefined;
}

const folders = ["apps", "bench", "examples", "packages", "scripts", "test"];
const beginsItem = /^\s*(?:[-*>]|\d+\.|@\w+)\s+/;

/** @returns every line of the programs' sources */
export function readComments(): CommentLine[] {
  return folders.flatMap((folder) => listSources(join(root, folder))).flatMap(toCommentLines);
}

function listSources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return ["node_modules", "dist"].includes(entry.name) ? [] : listSources(path);
    }
    return /(?<!\.generated|\.d)\.(tsx?|mjs)$/.test(entry.name) ? [path] : [];
  });
}

/** Without rows of tables, directives, and fenced or indented blocks. */
function toCommentLines(path: string): CommentLine[] {
  let isFenced = false;
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.map((line, index) => {
    const [, text] = /^\s*(?:\/\*\*|\*(?!\/)|\/\/) ?(.*?)(?:\s*\*\/)?$/.exec(line) ?? [];
    if (text?.startsWith("```")) isFenced = !isFenced;
    const isOther = isFenced || /^(```|\||biome-ignore |@ts-| {2})/.test(text ?? "");
    const place = { path: relative(root, path), number: index + 1, line };
    return { ...place, text: isOther || text === "" ? undefined : text };
  });
}

/** @returns the prose of comments */
export function passagesOfComments(): Passage[] {
  return joinLines(readComments());
}

/** @returns the prose of documents and changesets */
export function passagesOfDocuments(): Passage[] {
  const changesets = readdirSync(join(root, ".changeset"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(".changeset", name));
  return [...findDocuments(), ...changesets].flatMap((path) => {
    let isFenced = false;
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    return joinLines(
      lines.flatMap((line, index) => {
        if (/^\s*```/.test(line)) isFenced = !isFenced;
        const place = { path, number: index + 1 };
        if (isFenced || /^(\s*```|<|---|\s*$)/.test(line)) return [{ ...place, text: undefined }];
        if (!/^[|#]/.test(line)) return [{ ...place, text: line }];
        // No cell goes on in the next.
        return line.split(/(?<!\\)\||^#+ /).flatMap((text) => [
          { ...place, text },
          { ...place, text: undefined },
        ]);
      }),
    );
  });
}

function joinLines(
  lines: readonly { path: string; number: number; text: string | undefined }[],
): Passage[] {
  const passages: Passage[] = [];
  let current: Passage | undefined;
  for (const { path, number, text } of lines) {
    if (text === undefined || current?.path !== path || beginsItem.test(text)) current = undefined;
    if (text === undefined) continue;
    const added = text.replace(beginsItem, "").trim();
    if (current !== undefined) {
      current.text += ` ${added}`;
      continue;
    }
    current = { path, number, text: added };
    passages.push(current);
  }
  return passages;
}
