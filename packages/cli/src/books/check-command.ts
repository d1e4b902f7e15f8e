import { createRpcPool, getChainPreset } from "@coinslot/chain";
import type { BookFault, BooksReader, BooksStatus } from "@coinslot/facilitator";
import type { Network } from "@coinslot/protocol";
import { Command } from "commander";
import { InterruptedError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readNetworks } from "../networks.ts";
import { readLedger } from "../payments/read-ledger.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import { addRangeOptions, formatDay, type RangeOptions, toRange } from "./book-range.ts";
import { type ChainCheck, createChainCheck } from "./check-chain.ts";
import { type CheckResult, describeCheck, notOurs, printRows } from "./check-rows.ts";
import { createProgress } from "./progress.ts";

interface CheckOptions extends RangeOptions {
  ledger?: string;
  chain: boolean;
  json?: true;
}

/** `coinslot books check`: entries beside payments, and payments beside the chain. */
export function checkCommand(terminal: Terminal, io: Io): Command {
  return addRangeOptions(new Command("check"))
    .description("compare the books with the payments, and these with the chain")
    .addOption(ledgerOption())
    .option("--no-chain", "compare with the ledger's payments alone; ask no node")
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
Prints the differences, which should be none, and the transfers to a recipient of your sales that are
not yours. Ends with 1 when there is a difference. Final payments are compared with the chain, by the
endpoints of COINSLOT_RPC_URL and COINSLOT_RPC_URL_<chain id>. It changes nothing, and may run beside
a seller. Days are those of the payments' creation; an interrupted check goes on with --from.

Examples:
  coinslot books check
  coinslot books check --from 2026-11-01 --to 2026-12-01`,
    )
    .action(async (options: CheckOptions): Promise<void> => {
      const { ledger, json } = options;
      const result = await readLedger({ terminal, io, ledger }, (_, { books }) =>
        runCheck({ terminal, io, books, options }),
      );
      const rows = describeCheck(result);
      if (json) terminal.out(formatJson(result));
      else printRows(terminal, rows);
      const count = rows.filter(({ about }) => about !== notOurs).length;
      const { checked } = result;
      const compared = result.chains.reduce((sum, { found }) => sum + found, 0);
      const pending = result.chains.reduce((sum, { pending: some }) => sum + some, 0);
      if (result.isUnfinished) {
        terminal.err("Payments from before the books are not all posted yet: check again later.");
      }
      if (count > 0) throw new Error(count === 1 ? "One difference." : `${count} differences.`);
      const found = options.chain ? `; ${compared} final transfers found on the chain` : "";
      const later = pending > 0 ? `; ${pending} not final yet` : "";
      terminal.err(`No difference. ${checked} rows compared${found}${later}.`);
    });
}

/** Closed periods whose digest is another one now. */
async function findChanged(books: BooksReader, periods: BooksStatus["periods"]): Promise<string[]> {
  const changed: string[] = [];
  for (const [index, { closedTo, digest }] of periods.entries()) {
    const from = periods[index + 1]?.closedTo ?? 0;
    if (digest === undefined) continue;
    const found = await books.digest({ from, before: closedTo });
    if (found !== digest) changed.push(formatDay(closedTo - 1));
  }
  return changed;
}

async function runCheck(parts: {
  terminal: Terminal;
  io: Io;
  books: BooksReader;
  options: CheckOptions;
}): Promise<CheckResult> {
  const { terminal, io, books, options } = parts;
  const range = toRange(options);
  const progress = createProgress(io);
  const chains = options.chain ? openChains({ terminal, books, progress }) : undefined;
  const faults: BookFault[] = [];
  let checked = 0;
  let position = range.from;
  try {
    for await (const page of books.check(range)) {
      terminal.signal.throwIfAborted();
      checked += page.count;
      faults.push(...page.faults);
      await chains?.compare(page.transfers);
      position = Math.max(position, Math.min(page.position, io.now()));
      progress.show(`checked to ${formatDay(position)}, ${checked} rows`);
    }
    const compared = (await chains?.finish(options.to !== undefined)) ?? [];
    const { isUnfinished, periods } = await books.status();
    const changed = await findChanged(books, periods);
    const unconfigured = [...(chains?.unconfigured ?? [])];
    return { checked, faults, chains: compared, unconfigured, changed, isUnfinished };
  } catch (error) {
    if (!terminal.signal.aborted || faults.length > 0) throw error;
    const day = formatDay(position);
    throw new InterruptedError(`Interrupted. Go on with: coinslot books check --from ${day}`);
  } finally {
    progress.end();
    chains?.close();
  }
}

/** The configured chains. Each is asked once the books have a payment on it. */
function openChains(parts: {
  terminal: Terminal;
  books: BooksReader;
  progress: ReturnType<typeof createProgress>;
}) {
  const { terminal, books, progress } = parts;
  const configured = new Map(readNetworks(terminal.env).map((each) => [each.network, each]));
  const checks = new Map<Network, ChainCheck>();
  const pools: { close(): void }[] = [];
  const unconfigured = new Set<Network>();

  function open(network: Network): ChainCheck | undefined {
    const known = checks.get(network);
    const settings = configured.get(network);
    if (known || settings === undefined) return known;
    const { chainId, rpcUrls } = settings;
    const rpc = createRpcPool({ chainId, rpcUrls });
    pools.push(rpc);
    const check = createChainCheck({
      rpc,
      network,
      books,
      finalDepth: getChainPreset(chainId).finality.depth,
      signal: terminal.signal,
      onBlock: (block) => progress.show(`${network}: read to block ${block}`),
    });
    checks.set(network, check);
    return check;
  }

  return {
    unconfigured,
    async compare(transfers: Parameters<ChainCheck["compare"]>[0]): Promise<void> {
      for (const network of new Set(transfers.map((each) => each.network))) {
        const check = open(network);
        if (check === undefined) unconfigured.add(network);
        else await check.compare(transfers.filter((each) => each.network === network));
      }
    },
    finish: (isPast: boolean) =>
      Promise.all([...checks.values()].map((check) => check.finish({ isPast }))),
    close: () => {
      for (const pool of pools) pool.close();
    },
  };
}
