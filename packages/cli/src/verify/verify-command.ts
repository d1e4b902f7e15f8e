import { parseMoney } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import { requireAllowed } from "../allow/require-allowed.ts";
import type { Io } from "../io.ts";
import { readRequest } from "../pay/read-request.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import type { Check } from "./check.ts";
import { allChecks } from "./checks/list.ts";
import { formatFindings } from "./print-findings.ts";
import { readTarget } from "./read-target.ts";
import { type Verified, verifySeller } from "./verify-seller.ts";

interface VerifyOptions {
  method?: string;
  data?: string;
  header?: string[];
  other?: string;
  failing?: string;
  only?: Check[];
  unpaid?: true;
  maxPrice: string;
  realMoney?: true;
  yes?: true;
  iOwn?: string;
  allowInsecureHttp?: true;
  timeout: number;
  requireAll?: true;
  json?: true;
}

/** `coinslot verify`: a black-box check of a 402 seller, ours or not. */
export function verifyCommand(terminal: Terminal, io: Io): Command {
  return new Command("verify")
    .argument("<url>", "the paid URL")
    .option("-X, --method <method>", "default: GET, or POST with --data")
    .option("-d, --data <data>", "the body: as given, or @file, or @- for the standard input")
    .option("-H, --header <header>", "such as 'X-Api-Key: …', or @file; may be repeated", collect)
    .option("--other <path>", "another paid route, at the same price: no payment may buy both")
    .option("--failing <path>", "a paid route whose handler fails: nothing may be charged")
    .option("--only <checks>", `separated by commas, of: ${namesOf(allChecks)}`, readChecks)
    .option("--unpaid", "make no payment: look at offers, HEAD and paths alone")
    .option("--max-price <amount>", "maximum of each payment, in whole tokens", readPrice, "0.10")
    .option("--real-money", "pay from the wallet, on a chain that is not local")
    .option("--yes", "pay real money without a prompt")
    .option("--i-own <host>", "confirm that another machine's host is yours, as the URL names it")
    .option("--allow-insecure-http", "also use plain HTTP to another machine")
    .option("--timeout <seconds>", "longest wait for an answer or a transaction", readSeconds, 60)
    .option("--require-all", "also end with 1 where a check was not made")
    .option("--json", "print JSON, with amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Makes payments that a seller must serve, and such that it must refuse, and compares its answers with the
chain. By default it needs a chain of this machine, such as coinslot devnet: COINSLOT_NETWORK,
COINSLOT_RPC_URL and WALLET_PRIVATE_KEY as that prints them, for the seller and for this command. There a
throwaway account pays, and the wallet's key signs nothing.

It asks loopback hosts alone, and another one only where --i-own repeats its name. It follows no redirect.

With --real-money the wallet pays. The number of payments and their greatest sum are shown, and confirmed,
before the first one. An authorization that the seller refused stays executable for an hour at most.

Ends with 0 when no check has failed; with 1 when one has, or nothing is sold there; with 2 when an option
or a setting is wrong, or the answer was no; with 3 when it ended early after real money was sent. A check
that could not be made is "not checked", with its reason: --require-all counts it as failed.

Examples:
  coinslot verify http://localhost:4021/weather
  coinslot verify http://localhost:4021/weather --other /news --failing /broken --require-all
  coinslot verify http://localhost:4021/search -d '{"q":"rain"}' --only offer,purchase,receipt --json
  coinslot verify https://api.example.com/weather --i-own api.example.com --unpaid`,
    )
    .action(async (url: string, options: VerifyOptions): Promise<void> => {
      const isRealMoney = options.realMoney === true;
      const isSilent = options.yes === true;
      const request = await readRequest({ ...options, url, io });
      const target = readTarget({ ...options, request });
      const verified = await verifySeller({
        // On a local chain, no key of the environment signs.
        terminal: isRealMoney ? await requireAllowed(terminal, { mayAsk: !isSilent }) : terminal,
        io,
        target,
        checks: options.only ?? allChecks,
        maxPrice: options.maxPrice,
        isUnpaid: options.unpaid === true,
        isRealMoney,
        isSilent,
        timeoutMs: options.timeout * 1000,
      });
      const { rows } = verified;
      terminal.out(options.json ? formatJson(describe(verified)) : formatFindings(terminal, rows));
      const count = rows.filter(({ status }) => status === "failed").length;
      if (count > 0) throw new Error(count === 1 ? "One check failed." : `${count} checks failed.`);
      const missing = rows.filter(({ status }) => status === "not checked").length;
      if (options.requireAll && missing > 0) throw new Error(`${missing} checks were not made.`);
    });
}

/** The result for a script. */
function describe({ rows, plan, payer }: Verified) {
  const made = payer?.payments ?? [];
  return {
    isWell: !rows.some(({ status }) => status === "failed"),
    token: plan?.token && { network: plan.token.network, address: plan.token.address },
    payments: {
      planned: plan?.count ?? 0,
      made: made.length,
      maxTotal: plan?.total ?? 0n,
      total: made.reduce((total, { authorization }) => total + authorization.value, 0n),
    },
    findings: rows,
  };
}

function namesOf(checks: readonly Check[]): string {
  return checks.map(({ name }) => name).join(", ");
}

function readChecks(text: string): Check[] {
  const wanted = new Set(text.split(",").map((name) => name.trim()));
  const checks = allChecks.filter(({ name }) => wanted.delete(name));
  if (wanted.size === 0) return checks;
  throw new InvalidArgumentError(`the checks are ${namesOf(allChecks)}`);
}

function readPrice(text: string): string {
  if (parseMoney(text, 18) === undefined)
    throw new InvalidArgumentError("expected a price such as 0.10");
  return text.trim().replace("$", "");
}

function readSeconds(text: string): number {
  const seconds = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= 600) return seconds;
  throw new InvalidArgumentError("expected whole seconds from 1 to 600");
}

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}
