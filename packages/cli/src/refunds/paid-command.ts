import { markRefundPaidOperation, runOperation } from "@coinslot/facilitator";
import { toLowerHex } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import type { Terminal } from "../terminal.ts";
import { printRefund } from "./show-command.ts";

/** `coinslot refunds paid`: names the transaction by which the operator has paid a refund. */
export function paidCommand(terminal: Terminal, io: Io): Command {
  return new Command("paid")
    .description("name your own transaction that has paid a manual refund")
    .argument("<id>", "as refunds list shows it")
    .argument("<transaction>", "its hash; it moves the exact amount to the payer", readHash)
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
The seller asks the chain. The refund is final with its transaction; a reorganisation makes it manual.

Example:
  coinslot refunds paid 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 0x5e1f…`,
    )
    .action(
      async (
        id: string,
        transactionHash: `0x${string}`,
        options: { ledger?: string; json?: true },
      ): Promise<void> => {
        const place = readOperatorPlace(terminal, io, options.ledger);
        const request = { id, transactionHash };
        const refund = await runOperation(place, markRefundPaidOperation, request);
        printRefund(terminal, refund, options);
      },
    );
}

function readHash(text: string): `0x${string}` {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return toLowerHex(`0x${text.slice(2)}`);
  throw new InvalidArgumentError("expected the hash of a transaction: 0x and 64 digits");
}
