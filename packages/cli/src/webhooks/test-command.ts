import { operateWebhooks } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import type { Terminal } from "../terminal.ts";

/** `coinslot webhooks test`: an event without a payment, to try a receiver. */
export function testCommand(terminal: Terminal, io: Io): Command {
  return new Command("test")
    .description("send the event webhook.test to a receiver, or to all")
    .option("--endpoint <id>", "to this receiver alone")
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
A running seller delivers it as any other event. coinslot webhooks list shows whether it waits.

Example:
  coinslot webhooks test`,
    )
    .action(async ({ endpoint, ledger }: { endpoint?: string; ledger?: string }): Promise<void> => {
      const receivers = await operateWebhooks(readOperatorPlace(terminal, io, ledger)).test(
        endpoint,
      );
      terminal.out(`webhook.test goes to ${receivers.join(", ")}.`);
    });
}
