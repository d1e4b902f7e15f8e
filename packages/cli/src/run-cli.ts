import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { exitCode, InterruptedError, UnclearError, UsageError } from "./exit-code.ts";
import { type Io, processIo } from "./io.ts";
import { paint, type Terminal } from "./terminal.ts";

type CreateCommand = (terminal: Terminal, io: Io) => Command;

interface Entry {
  /** Purpose of the command. */
  summary: string;
  load(): Promise<CreateCommand>;
}

/**
 * Every command, in the order of the help text. Lazy imports: a command loads only its own
 * packages.
 */
const commands: Readonly<Record<string, Entry>> = {
  init: {
    summary: "write an .env file with fresh seeds for seller, relayer and buyer",
    load: async () => (await import("./init/init-command.ts")).initCommand,
  },
  doctor: {
    summary: "check settings, RPC endpoints, tokens, gas money, clock, channels and ledger",
    load: async () => (await import("./doctor/doctor-command.ts")).doctorCommand,
  },
  wallet: {
    summary: "show the addresses and balances of relayer, seller and buyer",
    load: async () => (await import("./wallet/wallet-command.ts")).walletCommand,
  },
  pay: {
    summary: "request a URL, and pay for it once you have seen the offer",
    load: async () => (await import("./pay/pay-command.ts")).payCommand,
  },
  channels: {
    summary: "show payment channels, of a buyer or a seller; withdraw from them, or claim",
    load: async () => (await import("./channels/channels-command.ts")).channelsCommand,
  },
  verify: {
    summary: "check a 402 seller from outside: offers, payments, replays and receipts",
    load: async () => (await import("./verify/verify-command.ts")).verifyCommand,
  },
  inspect: {
    summary: "show each 402 cycle of a seller under development, from a proxy before it",
    load: async () => (await import("./inspect/inspect-command.ts")).inspectCommand,
  },
  allow: {
    summary: "allow the nodes, tokens and keys of this folder's .env file",
    load: async () => (await import("./allow/allow-command.ts")).allowCommand,
  },
  today: {
    summary: "show the day's income against last week, and what needs you",
    load: async () => (await import("./reads/today-command.ts")).todayCommand,
  },
  payments: {
    summary: "show payments of the ledger, also beside the seller that holds it",
    load: async () => (await import("./payments/payments-command.ts")).paymentsCommand,
  },
  stats: {
    summary: "sum income, payments, refunds and gas, and count offers and refusals",
    load: async () => (await import("./stats/stats-command.ts")).statsCommand,
  },
  routes: {
    summary: "show sales, income and refusals of each route",
    load: async () => (await import("./reads/routes-command.ts")).routesCommand,
  },
  buyers: {
    summary: "show buyers, with their payments, sums and refunds",
    load: async () => (await import("./reads/buyers-command.ts")).buyersCommand,
  },
  refunds: {
    summary: "give payments back, list refunds, and sign them on a machine without a network",
    load: async () => (await import("./refunds/refunds-command.ts")).refundsCommand,
  },
  books: {
    summary: "check, show, export and close the books: every movement of money, in double entry",
    load: async () => (await import("./books/books-command.ts")).booksCommand,
  },
  relayers: {
    summary: "show the ledger's relayers: in use, retired, in flight, and their gas money",
    load: async () => (await import("./relayers/relayers-command.ts")).relayersCommand,
  },
  chains: {
    summary: "show heads, endpoints and reorganisations, as the running seller has them",
    load: async () => (await import("./reads/chains-command.ts")).chainsCommand,
  },
  audit: {
    summary: "show the audit log: acting commands, and who gave them",
    load: async () => (await import("./reads/audit-command.ts")).auditCommand,
  },
  stop: {
    summary: "refuse new payments on a network or of a route; those under way end",
    load: async () => (await import("./stops/stop-command.ts")).stopCommand,
  },
  start: {
    summary: "take new payments again, after coinslot stop",
    load: async () => (await import("./stops/stop-command.ts")).startCommand,
  },
  webhooks: {
    summary: "show the receivers of events, what waits and what is dead; deliver again",
    load: async () => (await import("./webhooks/webhooks-command.ts")).webhooksCommand,
  },
  listen: {
    summary: "forward events to a program that is being developed, until Ctrl-C",
    load: async () => (await import("./webhooks/listen-command.ts")).listenCommand,
  },
  console: {
    summary: "serve the operator's console to a browser: payments, refunds, books; until Ctrl-C",
    load: async () => (await import("./console/console-command.ts")).consoleCommand,
  },
  bridge: {
    summary: "bring USDT0 from the chain where it is held to the chain where it is spent",
    load: async () => (await import("./bridge/bridge-command.ts")).bridgeCommand,
  },
  facilitator: {
    summary: "run a hosted facilitator: /verify, /settle and /supported for other sellers",
    load: async () => (await import("./facilitator/facilitator-command.ts")).facilitatorCommand,
  },
  indexer: {
    summary: "run the indexing service: follow chains, and serve transfers and balances",
    load: async () => (await import("./indexer/indexer-command.ts")).indexerCommand,
  },
  keys: {
    summary: "make, list and end API keys of the indexing service",
    load: async () => (await import("./keys/keys-command.ts")).keysCommand,
  },
  devnet: {
    summary: "start a local chain with a test token and funded accounts, until Ctrl-C",
    load: async () => (await import("./devnet/devnet-command.ts")).devnetCommand,
  },
  completion: {
    summary: "print a script that completes commands and options in your shell",
    load: async () => (await import("./completion/completion-command.ts")).completionCommand,
  },
};

const exitCodes = `
Ends with 0 when it is done; 1 when it failed and no tokens have moved; 2 when an option or setting is
missing or wrong, or the answer was no; 3 when tokens may have moved: do not pay or send again before
you know; 130 when it was interrupted.`;

/**
 * Returns whether a command may send tokens, or follows sent ones: then it always reports their
 * fate.
 */
export function movesTokens(args: readonly string[]): boolean {
  const [name, subject = ""] = args.filter((word) => !word.startsWith("-"));
  if (name === "pay" || name === "verify") return true;
  if (name === "channels") return ["withdraw", "refund", "claim"].includes(subject);
  if (name === "refunds") return ["create", "approve", "submit"].includes(subject);
  return name === "bridge" && ["send", "track"].includes(subject);
}

/**
 * Returns whether a command that moves tokens reads a ledger first. It looks at the terminal's
 * `signal` right before it sends.
 */
export function readsLedger(args: readonly string[]): boolean {
  const [name, subject = ""] = args.filter((word) => !word.startsWith("-"));
  return name === "refunds" || (name === "channels" && ["refund", "claim"].includes(subject));
}

/**
 * Runs the `coinslot` command.
 *
 * @param args the arguments after the command's name
 * @returns the exit code, one of `exitCode`
 */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  io: Io = processIo,
): Promise<number> {
  const program = await createProgram(args, terminal, io);
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode.done;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed it already, help and version included.
      return error.exitCode === 0 ? exitCode.done : exitCode.usage;
    }
    if (terminal.signal.aborted && !(error instanceof UnclearError)) {
      const known = error instanceof InterruptedError ? error.message : undefined;
      terminal.err(known ?? "Interrupted. Sent transactions continue without this command.");
      return exitCode.interrupted;
    }
    terminal.err(`${paint(terminal, "red", "error:")} ${messageOf(error)}`);
    if (error instanceof UsageError) return exitCode.usage;
    return isUnclear(error) ? exitCode.unclear : exitCode.failed;
  }
}

/** The program with the full commands of this line; the others have a summary only. */
async function createProgram(
  args: readonly string[],
  terminal: Terminal,
  io: Io,
): Promise<Command> {
  const program = new Command("coinslot")
    .description("sell and buy requests for stablecoins")
    .version(readVersion())
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText("after", exitCodes);
  const [wanted, subject] = args.filter((word) => word !== "--");
  const named = wanted === "help" ? subject : wanted;
  for (const [name, { summary, load }] of Object.entries(commands)) {
    // A script that completes all commands holds all of their options.
    const isNeeded = name === named || wanted === "completion";
    const command = isNeeded ? (await load())(terminal, io) : new Command(name);
    program.addCommand(command.description(summary));
  }
  prepare(program, terminal);
  return program;
}

/** Makes a command and those below it print through the terminal, and throw instead of exiting. */
function prepare(command: Command, terminal: Terminal): void {
  command
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    })
    .showHelpAfterError("(add --help for the options)");
  for (const child of command.commands) prepare(child, terminal);
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  const isManifest = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return isManifest ? String(manifest.version) : "unknown";
}

/** The packages' errors carry a mark, so that no package is loaded for this. */
function isUnclear(error: unknown): boolean {
  if (error instanceof UnclearError) return true;
  return error instanceof Error && "moneyMayHaveMoved" in error && error.moneyMayHaveMoved === true;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
