import type { Protocol } from "@coinslot/client";
import { parseMoney } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import { requireAllowed } from "../allow/require-allowed.ts";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { readKeptPayment } from "./kept-payment.ts";
import { payFor } from "./pay-for.ts";
import { printHistory } from "./print-history.ts";
import { readRequest } from "./read-request.ts";
import { resumePayment } from "./resume-payment.ts";

interface PayOptions {
  method?: string;
  data?: string;
  header?: string[];
  maxPrice: string;
  maxDeposit?: string;
  protocols?: Protocol[];
  yes?: true;
  json?: true;
  resume?: string;
  history?: true;
  allowInsecureHttp?: true;
}

/** `coinslot pay`: requests a URL, shows the price, asks, pays, and prints the answer. */
export function payCommand(terminal: Terminal, io: Io): Command {
  return new Command("pay")
    .argument("[url]", "URL to buy")
    .option("-X, --method <method>", "default: GET, or POST with --data")
    .option("-d, --data <data>", "the body: as given, or @file, or @- for the standard input")
    .option(
      "-H, --header <header>",
      "such as 'Accept: text/csv', or @file; may be repeated",
      collect,
    )
    .option("--max-price <amount>", "maximum price, in whole tokens", readPrice, "0.10")
    .option(
      "--max-deposit <amount>",
      "pay by a payment channel where one is offered; most in escrow, in whole tokens",
      readPrice,
    )
    .option("--protocols <list>", "x402, mpp, or both in order of preference", readProtocols)
    .option("--yes", "pay without a prompt")
    .option("--json", "print JSON: the answer and the payment, in the smallest unit")
    .option("--resume <file>", "resume a payment with an unclear outcome")
    .option("--history", "list what was paid, each with its refund as the chain shows it")
    .option("--allow-insecure-http", "also pay over plain HTTP to other machines")
    .addHelpText(
      "after",
      `
The answer goes to the standard output, the offer and the receipt to the standard error. A body that
is JSON is sent as such; other text as a form, other files as bytes, unless a header says otherwise.
The wallet comes from WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, the networks from COINSLOT_NETWORK with
COINSLOT_RPC_URL, and COINSLOT_RPC_URL_<chain id>. It pays with the stablecoins of known chains, and with
the tokens that COINSLOT_TOKENS names: eip155:8453/0x8335…/6/2/USD Coin, separated by commas, where
decimals, version and name may be omitted for known tokens, or where two RPC hosts agree on them.

It pays by x402 (versions 1 and 2) and by MPP, the Machine Payments Protocol. A URL that offers both is
paid by x402 where it can be, unless --protocols mpp,x402 says otherwise. A receipt of MPP counts once
the chain shows the payment.

With --max-deposit, a seller's payment channel is used: one deposit into escrow, then a signature for each
request, without a transaction. A deposit is not spent: coinslot channels shows it and takes it back.

On a terminal, control characters are escaped as \\u{1b}, and a binary answer goes into a
file.

Ends with 1 when it failed and nothing was paid; with 2 when the answer was no; with 3 when the payment
was taken, or still can be, and the answer was no success or could not be written: then the payment is
kept in a file, and --resume continues it. While the file keeps its name and folder, the same request is
not paid again from there without asking.

Examples:
  coinslot pay https://api.example.com/weather
  coinslot pay https://api.example.com/search -d '{"q":"rain"}' --max-price 0.01 --yes
  coinslot pay https://api.example.com/upload -X PUT -d @picture.png -H 'Content-Type: image/png'
  coinslot pay https://api.example.com/weather --protocols mpp
  coinslot pay https://api.example.com/weather --max-deposit 0.05
  coinslot pay --resume coinslot-payment-1a2b3c4d.json
  coinslot pay --history`,
    )
    .action(async (url: string | undefined, options: PayOptions): Promise<void> => {
      const { resume, maxPrice, maxDeposit, protocols } = options;
      const isSilent = options.yes === true;
      const context = {
        terminal: await requireAllowed(terminal, { mayAsk: !isSilent }),
        io,
        isJson: options.json === true,
        isSilent,
        allowInsecureHttp: options.allowInsecureHttp === true,
      };
      if (options.history === true) {
        if (url !== undefined || resume !== undefined) {
          throw new UsageError("--history lists payments: leave out <url> and --resume.");
        }
        return printHistory(context);
      }
      if (resume !== undefined) {
        if (url !== undefined) throw new UsageError("--resume has its own URL: leave out <url>.");
        const kept = readKeptPayment(resume, io.folder);
        return resumePayment(context, kept);
      }
      if (url === undefined) throw new UsageError("Missing argument: URL.");
      const request = await readRequest({ ...options, url, io });
      return payFor(context, { request, maxPrice, maxDeposit, protocols });
    });
}

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

function readProtocols(text: string): Protocol[] {
  const names = text.split(",").map((name) => name.trim());
  const protocols = names.flatMap((name): Protocol[] =>
    name === "x402" || name === "mpp" ? [name] : [],
  );
  if (protocols.length < names.length || new Set(names).size < names.length) {
    throw new InvalidArgumentError("expected x402, mpp, or both with a comma between");
  }
  return protocols;
}

function readPrice(text: string): string {
  if (parseMoney(text, 18) === undefined)
    throw new InvalidArgumentError("expected a price such as 0.10");
  return text.trim().replace("$", "");
}
