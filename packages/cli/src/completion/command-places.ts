import type { Command, Option } from "commander";

/** A place on the line: after the words of one command. */
export interface Place {
  /** The words, each with a space before it; empty after the program's name. */
  path: string;
  /** Possible next words: commands, or the choices of an argument. */
  words: Described[];
  options: DescribedOption[];
}

interface Described {
  word: string;
  description: string;
}

interface DescribedOption {
  /** `--state` and, where there is one, `-s`. */
  flags: string[];
  description: string;
  /** `undefined`: it takes no value. Empty: it takes any. */
  values: readonly string[] | undefined;
}

/** Every place of a program, from the top down. */
export function findPlaces(program: Command): Place[] {
  return visit(program, "");
}

function visit(command: Command, path: string): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const named = commands.map((each) => ({ word: each.name(), description: each.description() }));
  const choices = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
    argChoices.map((word) => ({ word, description })),
  );
  const options = help.visibleOptions(command).map(describeOption);
  const place = { path, words: [...named, ...choices], options };
  // The help command stands among the visible ones, but leads nowhere.
  const below = command.commands.flatMap((each) => visit(each, `${path} ${each.name()}`));
  return [place, ...below];
}

function describeOption({ long, short, description, required, optional, argChoices }: Option) {
  const flags = [long, short].filter((flag) => flag !== undefined && flag !== null);
  return { flags, description, values: required || optional ? (argChoices ?? []) : undefined };
}
