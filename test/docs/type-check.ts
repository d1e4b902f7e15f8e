import { join } from "node:path";
import ts from "typescript";
import { type CodeBlock, root } from "./code-block.ts";

/** A block as a module: the continued blocks, the given declarations, and itself. */
interface Module {
  block: CodeBlock;
  fileName: string;
  text: string;
  /** The number of lines before the block's own. */
  linesBefore: number;
}

/**
 * Type-checks blocks of TypeScript and JavaScript in one program. Each is a module of its own with
 * the tests' imports. Reports only errors at run time for JavaScript.
 *
 * @returns complaints, each with the line of the document
 */
export function typeCheck(blocks: readonly CodeBlock[]): string[] {
  const modules = blocks.map(toModule);
  const texts = new Map(modules.map(({ fileName, text }) => [fileName, text]));
  const options = compilerOptions();
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name) ?? readFile(name);
  host.getSourceFile = (name, languageVersion, ...rest) => {
    const text = texts.get(name);
    return text === undefined
      ? getSourceFile(name, languageVersion, ...rest)
      : ts.createSourceFile(name, text, languageVersion, true);
  };
  const program = ts.createProgram({ rootNames: [...texts.keys()], options, host });
  return modules.flatMap((module) => {
    const source = program.getSourceFile(module.fileName);
    const semantic = program.getSemanticDiagnostics(source);
    const isScript = module.block.language === "js";
    return [
      ...program.getSyntacticDiagnostics(source),
      ...semantic.filter(({ code }) => !isScript || failsAtRunTime.has(code)),
    ].map((diagnostic) => describe(diagnostic, module));
  });
}

/**
 * Names, modules, exports, and members of options that do not exist, with and without a suggestion.
 */
const failsAtRunTime: ReadonlySet<number> = new Set([
  2304, 2305, 2307, 2353, 2551, 2552, 2561, 2584, 2614, 2724,
]);

function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  return {
    ...options,
    allowJs: true,
    checkJs: true,
    // An example may name variables that it does not use.
    noUnusedLocals: false,
    noUnusedParameters: false,
  };
}

function toModule(block: CodeBlock): Module {
  const before = [...textsBefore(block), block.given].filter((text) => text !== "").join("\n");
  const extension = block.language === "js" ? "js" : "ts";
  return {
    block,
    fileName: join(root, `test/docs/blocks/${block.document}/${block.line}.${extension}`),
    text: before === "" ? block.text : `${before}\n${block.text}`,
    linesBefore: before === "" ? 0 : before.split("\n").length,
  };
}

/** The texts that a block continues, the first one first. */
function textsBefore({ continued }: CodeBlock): string[] {
  if (continued === undefined) return [];
  return [...textsBefore(continued), continued.given, continued.text];
}

function describe(diagnostic: ts.Diagnostic, { block, linesBefore, text }: Module): string {
  const line = text.slice(0, diagnostic.start ?? 0).split("\n").length - linesBefore;
  const place =
    line > 0
      ? `${block.document}:${block.line + line - 1}`
      : `before ${block.document}:${block.line}`;
  return `${place}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n  ")}`;
}
