import { getRefundOperation, type RefundRecord, runOperation } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { showUnsafe } from "../safe-text.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import { explainState, toRefundRow } from "./refund-text.ts";

/** `coinslot refunds show`: all fields of a refund. */
export function showCommand(terminal: Terminal, io: Io): Command {
  return new Command("show")
    .description("show a refund")
    .argument("<id>", "as refunds list shows it")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText("after", "\nExample:\n  coinslot refunds show 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0")
    .action(async (id: string, options: { ledger?: string; json?: true }): Promise<void> => {
      const place = readOperatorPlace(terminal, io, options.ledger);
      printRefund(terminal, await runOperation(place, getRefundOperation, { id }), options);
    });
}

/** Prints the known fields of a refund, and its next step. */
export function printRefund(
  terminal: Terminal,
  refund: RefundRecord,
  { json }: { json?: true },
): void {
  const row = toRefundRow(refund);
  if (json) {
    terminal.out(formatJson(row));
    return;
  }
  const known = Object.entries(row).flatMap(([name, value]) =>
    value === null ? [] : [[name, showUnsafe(String(value))] as const],
  );
  terminal.out(formatFacts(terminal, Object.fromEntries(known)));
  const next = explainState(refund.state);
  if (next !== undefined) terminal.err(next);
}
