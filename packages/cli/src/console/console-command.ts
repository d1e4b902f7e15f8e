import { type StartConsoleOptions, startConsole } from "@coinslot/console";
import { operatorAt } from "@coinslot/facilitator";
import { ConfigurationError } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { readPort } from "../read-option.ts";
import { readSecret } from "../read-secret.ts";
import { type Terminal, untilInterrupted } from "../terminal.ts";

interface ConsoleCommandOptions {
  host: string;
  port: number;
  origin: string[];
  confirmAbove: string;
  ledger?: string;
}

/** `coinslot console`: the operator's console beside a running seller, until Ctrl-C. */
export function consoleCommand(terminal: Terminal, io: Io): Command {
  return new Command("console")
    .option("--port <number>", "listen here; 0 is any free port", readPort, 4040)
    .option("--host <address>", "listen here; another needs --origin", "127.0.0.1")
    .option("--origin <url>", "answer under this origin, too; may be repeated", collect, [])
    .option("--confirm-above <tokens>", "refunds above it are confirmed once more", "100")
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
It prints a link that signs one browser in, once. It works on the ledger beside the seller that holds
it, or through a seller that serves its operator over HTTP: COINSLOT_OPERATOR_URL. COINSLOT_CONSOLE_KEY
is a key to sign in by, and COINSLOT_CONSOLE_READER_KEY one that only reads: openssl rand -hex 32.

Examples:
  coinslot console
  coinslot console --port 0 --ledger sqlite:./coinslot.db
  coinslot console --host 0.0.0.0 --origin https://console.example`,
    )
    .action(async ({ ledger, origin, ...options }: ConsoleCommandOptions): Promise<void> => {
      const operator = operatorAt(readOperatorPlace(terminal, io, ledger));
      const started = await start(operator, {
        ...options,
        origins: origin,
        key: readSecret(terminal.env, "COINSLOT_CONSOLE_KEY"),
        readerKey: readSecret(terminal.env, "COINSLOT_CONSOLE_READER_KEY"),
        print: (line) => terminal.out(line),
        onError: (error) => terminal.err(error instanceof Error ? error.message : String(error)),
      });
      try {
        const { signal } = terminal;
        terminal.err(`The console runs at ${started.url}. Ctrl-C stops it.`);
        await untilInterrupted(signal);
      } finally {
        await started.close();
      }
      terminal.err("Stopped. Every session has ended.");
    });
}

async function start(operator: ReturnType<typeof operatorAt>, options: StartConsoleOptions) {
  try {
    return await startConsole(operator, options);
  } catch (error) {
    if (error instanceof ConfigurationError) throw new UsageError(error.message, { cause: error });
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") {
      const message = `Port ${options.port} is in use: stop its program, or choose another by --port.`;
      throw new UsageError(message, { cause: error });
    }
    throw error;
  }
}

function collect(origin: string, before: string[]): string[] {
  return [...before, origin];
}
