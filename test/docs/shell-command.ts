/** One command of a shell block: its variables, its program, and its arguments. */
export interface ShellCommand {
  /** Counted from 1, within the block. */
  line: number;
  /** `NAME=value` before the program. */
  variables: string[];
  words: string[];
}

const operators = /^(&&|\|\||[;&|\n])/;
const nothing = /^(?:[ \t]+|\\\n|#[^\n]*|>>? *\S+)/;

/**
 * Reads the commands of a shell block: words, quotes, comments, continued lines, lists and pipes.
 * Redirections of their output are left out.
 *
 * @throws on what an example can do without, such as substitutions
 */
export function readShellCommands(text: string): ShellCommand[] {
  const commands: ShellCommand[] = [];
  let words: string[] = [];
  let line = 1;
  let startLine = 1;
  let rest = text;

  function endCommand(): void {
    const program = words.findIndex((word) => !/^[A-Z][A-Z0-9_]*=/.test(word));
    const end = program < 0 ? words.length : program;
    if (words.length > 0) {
      commands.push({ line: startLine, variables: words.slice(0, end), words: words.slice(end) });
    }
    words = [];
  }

  while (rest !== "") {
    const skipped = nothing.exec(rest)?.[0];
    const operator = operators.exec(rest)?.[0];
    if (skipped !== undefined) {
      rest = rest.slice(skipped.length);
      if (skipped === "\\\n") line += 1;
    } else if (operator !== undefined) {
      endCommand();
      rest = rest.slice(operator.length);
      if (operator === "\n") line += 1;
    } else {
      const { word, length } = readWord(rest);
      if (words.length === 0) startLine = line;
      words.push(word);
      line += rest.slice(0, length).split("\n").length - 1;
      rest = rest.slice(length);
    }
  }
  endCommand();
  return commands;
}

/** The first word of a text, without its quotes. */
function readWord(text: string): { word: string; length: number } {
  const [raw = ""] = /^(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;&|])+/.exec(text) ?? [];
  if (raw === "") throw new Error(`a quote is not closed: ${text.slice(0, 40)}`);
  const bare = raw.replace(/'[^']*'/g, "");
  if (/[`<>]|\$\(/.test(bare)) throw new Error(`too clever for an example: ${raw}`);
  const word = raw.replace(
    /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g,
    (_match, single?: string, double?: string, escaped?: string) =>
      single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? "",
  );
  return { word, length: raw.length };
}
