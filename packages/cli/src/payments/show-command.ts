import { listPaymentsOperation } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { runRead } from "../reads/run-read.ts";
import { replaceUnsafe } from "../safe-text.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";

interface ShowOptions {
  ledger?: string;
  json?: true;
}

/** `coinslot payments show`: all public fields of a payment. */
export function showCommand(terminal: Terminal, io: Io): Command {
  return new Command("show")
    .description("show a payment")
    .argument("<id>", "as payments list shows it")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText("after", "\nExample:\n  coinslot payments show 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0")
    .action(async (id: string, { ledger, json }: ShowOptions): Promise<void> => {
      const found = await runRead({ terminal, io, ledger }, listPaymentsOperation, { search: id });
      const [record] = found.matched?.kind === "payment" ? found.payments : [];
      if (record === undefined) throw new Error(`The ledger has no payment ${id}`);
      // Retention has deleted its signature and the signed forms of its transaction.
      const pruned = record.isPruned ? { signedForms: "pruned" } : {};
      if (json) return terminal.out(formatJson({ ...record, ...pruned }));
      const known = Object.entries(record).flatMap(([name, value]) =>
        value === null || name === "isPruned"
          ? []
          : [[name, replaceUnsafe(String(value))] as const],
      );
      terminal.out(formatFacts(terminal, { ...Object.fromEntries(known), ...pruned }));
    });
}
