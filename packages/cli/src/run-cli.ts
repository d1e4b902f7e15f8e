import { BridgeError } from "@coinslot/bridge";
import { Command, CommanderError } from "commander";
import { bridgeCommand } from "./bridge/bridge-command.ts";
import { completionCommand } from "./completion/completion-command.ts";
import { devnetCommand } from "./devnet/devnet-command.ts";
import { doctorCommand } from "./doctor/doctor-command.ts";
import { exitCode, UnclearError, UsageError } from "./exit-code.ts";
import { facilitatorCommand } from "./facilitator/facilitator-command.ts";
import { indexerCommand } from "./indexer/indexer-command.ts";
import { initCommand } from "./init/init-command.ts";
import { keysCommand } from "./keys/keys-command.ts";
import { payCommand } from "./pay/pay-command.ts";
import { paymentsCommand } from "./payments/payments-command.ts";
import { processSurroundings, type Surroundings } from "./surroundings.ts";
import { paint, type Terminal } from "./terminal.ts";
import { walletCommand } from "./wallet/wallet-command.ts";

/**
 * Runs the `coinslot` command.
 *
 * @param args what follows the command's name
 * @returns the exit code: `exitCode` says what each means
 */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  surroundings: Surroundings = processSurroundings,
): Promise<number> {
  const program = createProgram(terminal, surroundings);
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode.done;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has said it already, help and version included.
      return error.exitCode === 0 ? exitCode.done : exitCode.usage;
    }
    if (terminal.signal.aborted && !(error instanceof UnclearError)) {
      terminal.err("Interrupted. What was sent goes on without this command.");
      return exitCode.interrupted;
    }
    terminal.err(`${paint(terminal, "red", "error:")} ${messageOf(error)}`);
    if (error instanceof UsageError) return exitCode.usage;
    const isUnclear =
      error instanceof UnclearError || (error instanceof BridgeError && error.moneyMayHaveMoved);
    return isUnclear ? exitCode.unclear : exitCode.failed;
  }
}

function createProgram(terminal: Terminal, surroundings: Surroundings): Command {
  const program = new Command("coinslot")
    .description("sell and buy requests for stablecoins")
    .addCommand(initCommand(terminal, surroundings))
    .addCommand(doctorCommand(terminal, surroundings))
    .addCommand(walletCommand(terminal, surroundings))
    .addCommand(payCommand(terminal, surroundings))
    .addCommand(paymentsCommand(terminal, surroundings))
    .addCommand(bridgeCommand(terminal))
    .addCommand(facilitatorCommand(terminal))
    .addCommand(indexerCommand(terminal, surroundings))
    .addCommand(keysCommand(terminal))
    .addCommand(devnetCommand(terminal))
    .addCommand(completionCommand(terminal));
  prepare(program, terminal);
  return program;
}

/** Lets a command and those below it speak through the terminal, and throw instead of exiting. */
function prepare(command: Command, terminal: Terminal): void {
  command
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    })
    .showHelpAfterError("(add --help for what can be given)");
  for (const child of command.commands) prepare(child, terminal);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
