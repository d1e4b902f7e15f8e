import { createRpcPool, getChainPreset } from "@coinslot/chain";
import type { BookFault, BookRange, BooksReader, BooksStatus } from "@coinslot/facilitator";
import type { Address, Network } from "@coinslot/protocol";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { findConfigured, readNetworks } from "../networks.ts";
import { readLedger } from "../payments/read-ledger.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import { addRangeOptions, formatDay, type RangeOptions, toRange } from "./book-range.ts";
import { type ChainSource, createNodeSource } from "./chain-source.ts";
import { type ChainCheck, createChainCheck } from "./check-chain.ts";
import { type CheckResult, describeCheck, notOurs, printRows } from "./check-rows.ts";
import { createIndexSource } from "./index-source.ts";
import { type OpenIndex, openIndex } from "./open-index.ts";
import { createProgress } from "./progress.ts";

interface CheckOptions extends RangeOptions {
  ledger?: string;
  chain: boolean;
  indexer: boolean;
  json?: true;
}

/** `coinslot books check`: entries beside payments, and payments beside the chain. */
export function checkCommand(terminal: Terminal, io: Io): Command {
  return addRangeOptions(new Command("check"))
    .description("compare the books with the payments, and these with the chain")
    .addOption(ledgerOption())
    .option("--no-chain", "compare with the ledger's payments alone; ask no node")
    .option("--no-indexer", "ask nodes alone, also where an index is configured")
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
Prints the differences, which should be none, and the transfers to a recipient of your sales that are
not yours. Ends with 1 when there is a difference. Final payments are compared with the chain: by an
indexing service (INDEXER_URL and INDEXER_API_KEY), or the index of this machine (INDEXER_CHAINS or
INDEXER_CONFIG), for the tokens that it has verified; else by the endpoints of COINSLOT_RPC_URL and
COINSLOT_RPC_URL_<chain id>. It changes nothing, and may run beside a seller. Days are those of the payments' creation; an interrupted check goes on with --from, by the last day shown.

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
      const { checked, summed } = result;
      const compared = result.chains.reduce((sum, { found }) => sum + found, 0);
      const pending = result.chains.reduce((sum, { pending: some }) => sum + some, 0);
      if (result.isUnfinished) {
        terminal.err("Payments from before the books are not all posted yet: check again later.");
      }
      if (count > 0) throw new Error(count === 1 ? "One difference." : `${count} differences.`);
      const byIndex = result.chains.some(({ by }) => by === "index");
      const place = byIndex ? "by the index" : "on the chain";
      const found = options.chain ? `; ${compared} final transfers found ${place}` : "";
      const alone = result.chains.reduce((sum, { byNodeAlone }) => sum + byNodeAlone, 0);
      const beside = alone > 0 ? `; ${alone} of them by a node alone: the index lacks them` : "";
      const later = pending > 0 ? `; ${pending} not final yet` : "";
      const closed = summed > 0 ? `; ${summed} entries of forgotten payments are in sums` : "";
      terminal.err(`No difference. ${checked} rows compared${found}${beside}${later}${closed}.`);
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
  const summed = await readSummed(books, range);
  const index = options.chain && options.indexer ? await openIndex(terminal) : undefined;
  const chains = options.chain
    ? openChains({ terminal, books, progress, summed, index, from: range.from })
    : undefined;
  const faults: BookFault[] = [];
  let checked = 0;
  let position = range.from;
  try {
    for await (const page of books.check(range)) {
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
    return {
      checked,
      summed: summed.count,
      faults,
      chains: compared,
      unconfigured,
      changed,
      isUnfinished,
    };
  } finally {
    progress.end();
    chains?.close();
    await index?.close();
  }
}

/** Entries of forgotten payments, closed into sums. */
interface Summed {
  count: number;
  /** Unix milliseconds: end of the last day, by network and token. */
  ends: ReadonlyMap<string, number>;
}

const dayMs = 86_400_000;

async function readSummed(books: BooksReader, range: BookRange): Promise<Summed> {
  const ends = new Map<string, number>();
  let total = 0;
  for await (const page of books.closedSums(range)) {
    for (const { day, count, network, asset } of page) {
      total += count;
      if (asset !== undefined) ends.set(`${network}/${asset}`, (day + 1) * dayMs);
    }
  }
  return { count: total, ends };
}

/** Time from a payment's creation to its block, at most, by clocks that differ. */
const marginMs = dayMs;

/** The configured chains. Each is asked once the books have a payment on it. */
function openChains(parts: {
  terminal: Terminal;
  books: BooksReader;
  progress: ReturnType<typeof createProgress>;
  summed: Summed;
  index: OpenIndex | undefined;
  /** Unix milliseconds: no payment is older. */
  from: number;
}) {
  const { terminal, books, progress, summed, index, from } = parts;
  const isAlone = index === undefined;
  const networks = isAlone ? readNetworks(terminal.env) : findConfigured(terminal.env);
  const configured = new Map(networks.map((each) => [each.network, each]));
  const checks = new Map<string, ChainCheck>();
  const nodes = new Map<Network, ChainSource | undefined>();
  const pools: { close(): void }[] = [];
  const unconfigured = new Set<Network>();

  function nodeOf(network: Network): ChainSource | undefined {
    const settings = configured.get(network);
    if (nodes.has(network) || settings === undefined) return nodes.get(network);
    const { chainId, rpcUrls } = settings;
    const rpc = createRpcPool({ chainId, rpcUrls });
    pools.push(rpc);
    const node = createNodeSource(rpc, getChainPreset(chainId).finality.depth);
    nodes.set(network, node);
    return node;
  }

  /** The comparison of a token: by the index where that has it, else by a node. */
  function open(network: Network, asset: Address): ChainCheck | undefined {
    const indexed = index?.find(network);
    const isIndexed = indexed?.tokens.has(asset) === true;
    const key = `${network} ${isIndexed ? "index" : "nodes"}`;
    const known = checks.get(key);
    if (known !== undefined) return known;
    const node = nodeOf(network);
    const since = Math.max(0, from - marginMs);
    const source =
      indexed !== undefined && isIndexed
        ? createIndexSource({ ...indexed, from: since, node })
        : node;
    if (source === undefined) return undefined;
    const check = createChainCheck({
      source,
      node: isIndexed ? node : undefined,
      network,
      books,
      summedBefore: (token) => summed.ends.get(`${network}/${token}`),
      onBlock: (block) => progress.show(`${network}: read to block ${block}`),
    });
    checks.set(key, check);
    return check;
  }

  return {
    unconfigured,
    async compare(transfers: Parameters<ChainCheck["compare"]>[0]): Promise<void> {
      const groups = new Map<ChainCheck, (typeof transfers)[number][]>();
      for (const transfer of transfers) {
        const check = open(transfer.network, transfer.asset);
        if (check === undefined) unconfigured.add(transfer.network);
        else groups.set(check, [...(groups.get(check) ?? []), transfer]);
      }
      for (const [check, group] of groups) await check.compare(group);
    },
    finish: (isPast: boolean) =>
      Promise.all([...checks.values()].map((check) => check.finish({ isPast }))),
    close: () => {
      for (const pool of pools) pool.close();
    },
  };
}
