import { listBuyersOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { readLimit } from "../read-option.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { moneyText, type ReadOptions, readCommand, runRead, timeText } from "./run-read.ts";

interface BuyersOptions extends ReadOptions {
  all?: true;
  cursor?: string;
  limit: number;
}

/** `coinslot buyers`: the buyers of a ledger, with their payments, sums and refunds. */
export function buyersCommand(terminal: Terminal, io: Io): Command {
  return readCommand("buyers")
    .option("--all", "all of them by their addresses, page by page; default: the recent ones")
    .option("--cursor <address>", "cursor of the next page, as printed by the previous one")
    .option("--limit <number>", "page size, at most 200", readLimit(200), 50)
    .addHelpText(
      "after",
      `
Counts and sums of a buyer with more than 1,000 payments are of 1,000 of them, and marked by "at least".

Examples:
  coinslot buyers
  coinslot buyers --all --json`,
    )
    .action(async (options: BuyersOptions): Promise<void> => {
      const { ledger, json, all, cursor, limit } = options;
      const order = all || cursor !== undefined ? "address" : "recent";
      const page = await runRead({ terminal, io, ledger }, listBuyersOperation, {
        order,
        limit,
        cursor: cursor?.toLowerCase(),
      });
      if (json) return terminal.out(formatJson(page));
      if (page.buyers.length === 0) return terminal.err("No payment was made yet.");
      const rows = page.buyers.map((buyer) => [
        buyer.address,
        `${buyer.isPartial ? "at least " : ""}${buyer.sales}`,
        moneyText(buyer.total),
        buyer.refunds === 0 ? "-" : `${buyer.refunds}: ${moneyText(buyer.refunded)}`,
        timeText(buyer.lastPaymentAt),
        buyer.refusedUntil === null
          ? buyer.hasCode
            ? "code"
            : "key"
          : paint(terminal, "yellow", `refused until ${timeText(buyer.refusedUntil)}`),
      ]);
      const heading = ["buyer", "sales", "total", "refunds", "last payment (UTC)", "account"];
      terminal.out(formatTable(terminal, [heading, ...rows]));
      if (page.nextCursor !== null) {
        terminal.err(`There are more: add --cursor ${page.nextCursor}`);
      }
    });
}
