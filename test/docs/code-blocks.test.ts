import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type CodeBlock, findDocuments, readCodeBlocks, readDocument, root } from "./code-block.ts";
import { checkCommand } from "./known-commands.ts";
import { findMissingPaths } from "./known-paths.ts";
import { readShellCommands } from "./shell-command.ts";
import { sources } from "./sources.ts";
import { typeCheck } from "./type-check.ts";

const documents = findDocuments();
const blocks = documents.flatMap(readCodeBlocks);
const inLanguage = (...languages: string[]) =>
  blocks.filter(({ language }) => languages.includes(language));

describe("the code in documents", () => {
  it("is in a checked language, or in text for drawings and output", () => {
    const checked = ["ts", "js", "sh", "console", "json", "yaml", "env", "text"];
    // Run by the tests of reverse proxies.
    checked.push("nginx", "caddyfile");
    // Run by scripts/try-backups.sh.
    checked.push("bash");
    const strangers = blocks.filter(({ language }) => !checked.includes(language));
    expect(strangers.map(placeOf)).toEqual([]);
  });

  it("compiles", { timeout: 240_000 }, () => {
    expect(typeCheck(inLanguage("ts", "js"))).toEqual([]);
  });

  it("can be typed: programs, options, files, variables and paths exist", async () => {
    const complaints = await Promise.all(inLanguage("sh", "console").map(complaintsOfShell));
    expect(complaints.flat()).toEqual([]);
  });

  it("can be parsed", () => {
    const complaints = inLanguage("json", "yaml").flatMap((block) => {
      try {
        if (block.language === "json") JSON.parse(block.text);
        else parse(block.text);
        return [];
      } catch (error) {
        return [`${placeOf(block)}: ${error}`];
      }
    });
    expect(complaints).toEqual([]);
  });

  it("sets variables that a program reads", () => {
    const unknown = inLanguage("env").flatMap((block) =>
      block.text
        .split("\n")
        .flatMap((line) => /^#? ?([A-Z][A-Z0-9_]*)=/.exec(line)?.[1] ?? [])
        .filter((name) => !isKnownVariable(name, block))
        .map((name) => `${placeOf(block)}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });
});

describe("the documents", () => {
  it("link to files that exist", () => {
    const broken = documents.flatMap((document) => {
      const prose = readDocument(document).replace(/```[\s\S]*?```/g, "");
      return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target = ""]) => target.replace(/#.*$/, ""))
        .filter((path) => path !== "" && !/^[a-z]+:/.test(path))
        .filter((path) => !existsSync(join(root, dirname(document), path)))
        .map((path) => `${document}: ${path}`);
    });
    expect(broken).toEqual([]);
  });

  it("name files and folders that exist", () => {
    const missing = documents.flatMap((document) =>
      findMissingPaths(readDocument(document)).map((path) => `${document}: ${path}`),
    );
    expect(missing).toEqual([]);
  });
});

async function complaintsOfShell(block: CodeBlock): Promise<string[]> {
  const context = {
    blocks: blocks.filter(({ document }) => document === block.document),
    folders: [dirname(block.document), "."],
    isKnownVariable: (name: string) => isKnownVariable(name, block),
  };
  const complaints: string[] = [];
  for (const command of readShellCommands(block.text)) {
    const [program, path = ""] = command.words;
    if (program === "cd") context.folders = context.folders.map((folder) => join(folder, path));
    const place = `${block.document}:${block.line + command.line - 1}`;
    for (const complaint of await checkCommand(command, context)) {
      complaints.push(`${place}: ${complaint}`);
    }
  }
  return complaints;
}

/** Returns whether a program reads a variable, or an example of the same document. */
function isKnownVariable(name: string, { document }: CodeBlock): boolean {
  // Each secret may also be given as the name of a file that holds it.
  const secret = name.replace(/_FILE$/, "");
  const ofChain = secret.replace(/_\d+$/, "_<CHAIN_ID>");
  const word = new RegExp(`\\b(${secret}|${ofChain})(?!\\w)`);
  const examples = inLanguage("ts", "js").filter((block) => block.document === document);
  return sources.some((text) => word.test(text)) || examples.some(({ text }) => word.test(text));
}

function placeOf({ document, line, language }: CodeBlock): string {
  return `${document}:${line}: a block in "${language}"`;
}
