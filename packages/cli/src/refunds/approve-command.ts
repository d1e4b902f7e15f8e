import { approveRefundOperation, getRefundOperation, runOperation } from "@coinslot/facilitator";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { formatFacts, type Terminal } from "../terminal.ts";
import { formatAmount, formatState } from "./refund-text.ts";
import { printRefund } from "./show-command.ts";

/** `coinslot refunds approve`: lets a refund go on that waits for the operator's word. */
export function approveCommand(terminal: Terminal, io: Io): Command {
  return new Command("approve")
    .description("let a refund in review or blocked go to its payer's own address")
    .argument("<id>", "as refunds list shows it")
    .option("--yes", "do not prompt")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText("after", "\nExample:\n  coinslot refunds approve 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0")
    .action(
      async (id: string, options: { yes?: true; ledger?: string; json?: true }): Promise<void> => {
        const place = readOperatorPlace(terminal, io, options.ledger);
        const refund = await runOperation(place, getRefundOperation, { id });
        terminal.err(
          formatFacts(terminal, {
            refund: `${formatAmount(refund, refund.amount)} on ${refund.network}, ${formatState(refund)}`,
            to: refund.payer,
          }),
        );
        if (!options.yes) {
          if (terminal.confirm === undefined) {
            throw new UsageError("No terminal to prompt: add --yes to approve without a prompt.");
          }
          if (!(await terminal.confirm("Let it go?"))) throw new UsageError("Nothing was changed.");
        }
        // From here on, a signal does not end it unreported.
        terminal.signal.throwIfAborted();
        printRefund(terminal, await runOperation(place, approveRefundOperation, { id }), options);
      },
    );
}
