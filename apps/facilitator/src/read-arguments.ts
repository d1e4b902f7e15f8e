import { parseArgs } from "node:util";
import { facilitatorSettings, isCallerName } from "@coinslot/hosting";

/** The requested work. */
export type Arguments =
  | { kind: "help" }
  | { kind: "new-key"; name: string }
  /** `isDevnet`: on a local chain of its own. `file`: a configuration file. */
  | { kind: "serve"; isDevnet: boolean; file: string | undefined };

/** A wrong argument, in words for the operator. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const settings = facilitatorSettings.map(
  ({ name, explanation }) => `  ${name}\n      ${explanation}`,
);

export const usage = `Usage: facilitator [--config <file>] [command]

  (no command)        verifies and settles for other sellers, until Ctrl-C
  --config <file>     a YAML or JSON file with settings; FACILITATOR_CONFIG unless set
  --devnet            starts a chain of its own, to try it
  new-key <name>      makes a key for a caller; the facilitator gets its hash alone
  --help

Settings, from the environment:
${settings.join("\n")}`;

const options = {
  help: { type: "boolean", short: "h" },
  devnet: { type: "boolean" },
  config: { type: "string" },
} as const;

/** @throws UsageError */
export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parse(args);
  if (values.help) return { kind: "help" };
  const [command, name, ...others] = positionals;
  if (command === undefined) {
    return { kind: "serve", isDevnet: values.devnet === true, file: values.config };
  }
  if (command !== "new-key") throw new UsageError(`Unknown command ${JSON.stringify(command)}`);
  if (name === undefined || others.length > 0 || !isCallerName(name)) {
    throw new UsageError("new-key takes a name of up to 64 letters, digits, dots and dashes");
  }
  return { kind: "new-key", name };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
