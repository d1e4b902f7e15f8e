import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Inspector, startInspector } from "@coinslot/inspector";
import { Command, InvalidArgumentError } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readPort } from "../read-option.ts";
import { type Terminal, untilInterrupted } from "../terminal.ts";
import { replayCommand } from "./replay-command.ts";
import { reportCycles } from "./report-cycles.ts";

interface InspectOptions {
  port: number;
  pagePort: number;
  rpcUrl?: string[];
  record?: string;
  json?: true;
}

const usualPort = 4022;
const usualPagePort = 4023;

/** `coinslot inspect`: a proxy before a seller under development, which shows 402 cycles. */
export function inspectCommand(terminal: Terminal, io: Io): Command {
  return (
    new Command("inspect")
      // The subcommand has an --rpc-url of its own.
      .enablePositionalOptions()
      .argument("<url>", "the seller, such as http://localhost:4021")
      .option(
        "--port <port>",
        "of the proxy, on this machine alone; 0: any free one",
        readPort,
        usualPort,
      )
      .option("--rpc-url <url>", "a node that knows the receipts' gas; may be repeated", collect)
      .option("--page-port <port>", "of the page that shows the cycles", readPort, usualPagePort)
      .option("--record <file>", "write the cycles to a new file at the end, to be shared")
      .option("--json", "print each cycle as a line of JSON")
      .addHelpText(
        "after",
        `
Buyers ask the proxy in place of the seller. Messages pass unchanged, and are joined into 402 cycles: the unpaid
request and its offers, the payment beside the offer, the seller's answer and the receipt. One line is printed for
each cycle; where a payment was refused, it names the failed check. Nothing that is shown holds a signature, a
key or a cookie.

coinslot inspect replay <file> makes a recorded cycle anew, on a local chain.

Examples:
  coinslot inspect http://localhost:4021
  coinslot inspect http://localhost:4021 --record refused.json
  coinslot inspect http://localhost:4021 --rpc-url http://127.0.0.1:8545 --json`,
      )
      .action(async (url: string, options: InspectOptions): Promise<void> => {
        const inspector = await open(url, options);
        try {
          const { signal } = terminal;
          const { proxyUrl, pageUrl } = inspector;
          terminal.err(`Ask the seller at ${proxyUrl}. See ${pageUrl}. Ctrl-C stops it.`);
          const stopReport = reportCycles(terminal, inspector, { isJson: options.json === true });
          await untilInterrupted(signal);
          await inspector.settled();
          stopReport();
          if (options.record !== undefined) await save(terminal, io, options.record, inspector);
        } finally {
          await inspector.close();
        }
        terminal.err("Stopped.");
      })
      .addCommand(replayCommand(terminal, io))
  );
}

async function save(terminal: Terminal, io: Io, file: string, inspector: Inspector): Promise<void> {
  const path = resolve(io.folder, file);
  // A file that is there may be another recording.
  await writeFile(path, inspector.record(), { flag: "wx", mode: 0o600 });
  terminal.err(`Recorded ${inspector.cycles().length} cycles in ${path}.`);
}

async function open(seller: string, options: InspectOptions): Promise<Inspector> {
  const { port, pagePort, rpcUrl: rpcUrls = [] } = options;
  try {
    return await startInspector({ seller, port, pagePort, rpcUrls });
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(`<url>: ${error.message}`);
    const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!isTaken) throw error;
    const taken = "port" in error ? error.port : undefined;
    const option = taken === pagePort ? "--page-port" : "--port";
    throw new UsageError(`Port ${taken} is taken: choose another one by ${option}.`);
  }
}

function collect(value: string, previous: string[] = []): string[] {
  if (/^https?:\/\//.test(value) && URL.canParse(value)) return [...previous, value];
  throw new InvalidArgumentError("expected a URL by http or https");
}
