import { exportRefundsOperation, runOperation } from "@coinslot/facilitator";
import type { Address } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { readAddress } from "../read-option.ts";
import type { Terminal } from "../terminal.ts";
import { writeRefundFile } from "./refund-files.ts";

interface ExportOptions {
  float?: Address;
  id?: string[];
  validHours: number;
  ledger?: string;
}

/** `coinslot refunds export`: a file of the refunds that wait for a signature. */
export function exportCommand(terminal: Terminal, io: Io): Command {
  return new Command("export")
    .description("write the refunds that wait for a signature to a file, for refunds sign")
    .argument("<file>", "a new file")
    .option("--float <address>", "the account that will sign; default: the seller's", readAddress)
    .option("--id <id>", "only this refund; may be repeated", collect)
    .option("--valid-hours <hours>", "time for signing and submitting, at most 720", readHours, 24)
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
The seller has to run: it knows the tokens. Until the time is over, no other account signs these
refunds. The file holds no secret. A changed one is of no use: the seller compares each signature
with its own records.

Example:
  coinslot refunds export refunds.json`,
    )
    .action(async (file: string, options: ExportOptions): Promise<void> => {
      const { float, id: ids, validHours, ledger } = options;
      const place = readOperatorPlace(terminal, io, ledger);
      const request = { float, ids, validForSeconds: validHours * 3_600 };
      const unsigned = await runOperation(place, exportRefundsOperation, request);
      const count = unsigned.refunds.length;
      if (count === 0) return terminal.err("No refund waits for a signature.");
      await writeRefundFile(file, io.folder, unsigned);
      terminal.out(
        `${count} ${count === 1 ? "refund" : "refunds"} of ${unsigned.float} in ${file}`,
      );
      terminal.err("Sign them where the key is: coinslot refunds sign");
    });
}

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

function readHours(text: string): number {
  const hours = Number(text);
  if (Number.isInteger(hours) && hours >= 1 && hours <= 720) return hours;
  throw new InvalidArgumentError("expected a number of hours from 1 to 720");
}
