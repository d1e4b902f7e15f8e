import type { BookEntry, BookSum } from "@coinslot/facilitator";
import { formatMoney } from "@coinslot/protocol";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readLedger } from "../payments/read-ledger.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import { addRangeOptions, formatDay, type RangeOptions, toRange } from "./book-range.ts";
import { type Currency, currencyOf } from "./currency.ts";

interface ShowOptions extends RangeOptions {
  ledger?: string;
  json?: true;
}

/** `coinslot books show`: the balance of each account, and the closed periods. */
export function showCommand(terminal: Terminal, io: Io): Command {
  return addRangeOptions(new Command("show"))
    .description("show what each account has got and given, and the closed periods")
    .addOption(ledgerOption())
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Examples:
  coinslot books show
  coinslot books show --from 2026-11-01 --to 2026-12-01`,
    )
    .action(async (options: ShowOptions): Promise<void> => {
      const balances = new Map<string, Balance>();
      const status = await readLedger(
        { terminal, io, ledger: options.ledger },
        async (_, { books }) => {
          for await (const page of books.sums(toRange(options))) {
            for (const sum of page) addBoth(balances, sum);
          }
          return books.status();
        },
      );
      const sorted = [...balances].sort(([one], [other]) => (one < other ? -1 : 1));
      const rows = sorted.map(([, { account, network, currency, amount }]) => {
        const { code, decimals } = currency;
        return { account, network, amount: formatMoney(amount, decimals), currency: code };
      });
      const { periods, isUnfinished, unpricedTransactions } = status;
      const closedTo = periods[0]?.closedTo;
      const until = closedTo === undefined ? null : formatDay(closedTo - 1);
      if (options.json) {
        return terminal.out(
          formatJson({ balances: rows, closedUntil: until, isUnfinished, unpricedTransactions }),
        );
      }
      const cells = rows.map((row) => [row.account, row.network, row.amount, row.currency]);
      if (rows.length === 0) terminal.err("No entries in this time.");
      else terminal.out(formatTable(terminal, [["account", "network", "balance", ""], ...cells]));
      if (until !== null) terminal.err(`Closed up to the end of ${until}.`);
      if (isUnfinished) terminal.err("Payments from before the books are not all posted yet.");
      if (unpricedTransactions > 0) {
        terminal.err(`The gas of ${unpricedTransactions} transactions has no known price.`);
      }
    });
}

interface Balance {
  account: BookEntry["debit"];
  network: BookEntry["network"];
  currency: Currency;
  /** Debits less credits. */
  amount: bigint;
}

function addBoth(balances: Map<string, Balance>, sum: BookSum): void {
  const { network, asset } = sum;
  const currency = currencyOf(network, asset);
  const add = (account: BookEntry["debit"], amount: bigint) => {
    const key = `${account}/${network}/${asset}`;
    const known = balances.get(key)?.amount ?? 0n;
    balances.set(key, { account, network, currency, amount: known + amount });
  };
  add(sum.debit, sum.amount);
  add(sum.credit, -sum.amount);
}
