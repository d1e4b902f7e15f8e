import { KeysUsageError, keysUsage } from "@coinslot/hosting";

/** The program's arguments. */
export interface Arguments {
  isHelp: boolean;
  /** True if to start a development chain, and follow that. */
  isDevnet: boolean;
  /** A configuration file. */
  file: string | undefined;
  /** The arguments after `keys`. */
  keysArgs: readonly string[] | undefined;
}

export const usage = `Usage: indexer [--config <file>] [command]

  (no command)        follows the chains of the configuration and serves the API
  --devnet            starts a chain of its own with some traffic, and follows that
${keysUsage}
  --help

Configuration comes from INDEXER_… variables and a YAML or JSON file; see the README.`;

/** @throws KeysUsageError */
export function readArguments(args: readonly string[]): Arguments {
  const read = { isHelp: false, isDevnet: false, file: undefined, keysArgs: undefined };
  return readNext(read, args);
}

function readNext(read: Arguments, [argument, ...rest]: readonly string[]): Arguments {
  switch (argument) {
    case undefined:
      return read;
    case "--help":
    case "-h":
      return { ...read, isHelp: true };
    case "--devnet":
      return readNext({ ...read, isDevnet: true }, rest);
    case "--config": {
      const [file, ...others] = rest;
      if (file === undefined) throw new KeysUsageError("--config takes the name of a file");
      return readNext({ ...read, file }, others);
    }
    case "keys":
      return { ...read, keysArgs: rest };
    default:
      throw new KeysUsageError(`Unknown argument ${JSON.stringify(argument)}`);
  }
}
