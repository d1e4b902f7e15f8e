import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the repository, with a slash at its end. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

/** A fenced block of a document. */
export interface CodeBlock {
  /** Path of the document, from the root of the repository. */
  document: string;
  /** The line of its first line of text, counted from 1. */
  line: number;
  /** The text after the opening fence. */
  language: string;
  text: string;
  /**
   * Declarations that a reader does not see: the content of an HTML comment `<!-- given … -->`
   * before the block. It declares the names that an example uses.
   */
  given: string;
  /** The previous block that this one continues, by `<!-- continues -->` before it. */
  continued: CodeBlock | undefined;
}

const unread: ReadonlySet<string> = new Set(["node_modules", "dist", "packed", "coverage"]);

/** @returns the paths of all documents of the repository */
export function findDocuments(folder = root): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return unread.has(entry.name) || entry.name.startsWith(".") ? [] : findDocuments(path);
    }
    return entry.name.endsWith(".md") ? [relative(root, path)] : [];
  });
}

/** @returns the text of a document */
export function readDocument(document: string): string {
  return readFileSync(join(root, document), "utf8");
}

/** @throws where a fence is not closed, or a block continues none */
export function readCodeBlocks(document: string): CodeBlock[] {
  const lines = readDocument(document).split("\n");
  const blocks: CodeBlock[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const fence = /^( *)(`{3,})(.*)$/.exec(lines[index] ?? "");
    if (fence === null) continue;
    const [, indent = "", ticks = "", language = ""] = fence;
    const end = lines.findIndex((line, at) => at > index && line === `${indent}${ticks}`);
    if (end < 0) throw new Error(`${document}:${index + 1}: the block is not closed`);
    const comment = commentBefore(lines, index);
    const continued = comment === "continues" ? blocks.at(-1) : undefined;
    if (comment === "continues" && continued === undefined) {
      throw new Error(`${document}:${index + 1}: there is no block to continue`);
    }
    blocks.push({
      document,
      line: index + 2,
      language: language.trim(),
      text: lines
        .slice(index + 1, end)
        .map((line) => line.slice(indent.length))
        .join("\n"),
      given: comment.startsWith("given") ? comment.slice("given".length) : "",
      continued,
    });
    index = end;
  }
  return blocks;
}

/** The HTML comment that ends above a line, blank lines aside. */
function commentBefore(lines: readonly string[], index: number): string {
  const above = lines.slice(0, index).join("\n").trimEnd();
  if (!above.endsWith("-->")) return "";
  return above.slice(above.lastIndexOf("<!--") + "<!--".length, -"-->".length).trim();
}
