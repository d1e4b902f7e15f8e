import { receiptOf, receiptPage } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import { readLedger } from "./read-ledger.ts";

/** `coinslot payments receipt`: the receipt of a payment, as JSON or as a page to print. */
export function receiptCommand(terminal: Terminal, io: Io): Command {
  return new Command("receipt")
    .description("print the receipt of a payment, as JSON")
    .argument("<id>", "as payments list shows it")
    .addOption(ledgerOption())
    .option("--html", "a page to read and to print, without scripts")
    .addHelpText(
      "after",
      `
Example:
  coinslot payments receipt 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --html > receipt.html`,
    )
    .action(async (id: string, options: { ledger?: string; html?: true }): Promise<void> => {
      const { ledger, html } = options;
      const sale = await readLedger({ terminal, io, ledger }, (_, { books }) => books.sale(id));
      if (sale === undefined) throw new Error(`The ledger has no payment ${id}`);
      const receipt = receiptOf(sale.payment, sale.sold);
      if (receipt === undefined) {
        throw new Error(
          `Payment ${id} is ${sale.payment.state}: only a confirmed one has a receipt`,
        );
      }
      if (html) await io.write(receiptPage(receipt));
      else terminal.out(formatJson(receipt));
    });
}
