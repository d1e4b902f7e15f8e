import {
  importRefundsOperation,
  OperationRefusedError,
  type RefundRecord,
  runOperation,
  signedRefundsSchema,
} from "@coinslot/facilitator";
import { Command } from "commander";
import { UnclearError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import { readRefundFile } from "./refund-files.ts";
import { formatAmount, formatState, toRefundRow } from "./refund-text.ts";

/** Refunds of one request: the seller reads the chain for each. */
const perRequest = 25;

interface Submitted {
  sent: RefundRecord[];
  refused: { id: string; message: string }[];
}

/** `coinslot refunds submit`: brings signed refunds back to the seller, which sends them. */
export function submitCommand(terminal: Terminal, io: Io): Command {
  return new Command("submit")
    .description("send refunds that were signed elsewhere")
    .argument("<file>", "as refunds sign wrote it")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
The seller has to run. It compares each signature with its own records, and sends what fits. A file
may be submitted again: nothing is sent twice. Ends with 1 when a refund was refused.

Example:
  coinslot refunds submit refunds.signed.json`,
    )
    .action(async (name: string, options: { ledger?: string; json?: true }): Promise<void> => {
      const kind = "signed refunds, as coinslot refunds sign writes it";
      const { folder } = io;
      const { refunds, ...head } = readRefundFile(signedRefundsSchema, { name, folder, kind });
      const place = readOperatorPlace(terminal, io, options.ledger);
      const submitted: Submitted = { sent: [], refused: [] };
      for (let begin = 0; begin < refunds.length; begin += perRequest) {
        terminal.signal.throwIfAborted();
        const part = { ...head, refunds: refunds.slice(begin, begin + perRequest) };
        const end = begin + part.refunds.length;
        const stopWaiting = io.showWaiting(
          `submitting ${begin + 1} to ${end} of ${refunds.length}`,
        );
        try {
          const { sent, refused } = await runOperation(place, importRefundsOperation, part);
          submitted.sent.push(...sent);
          submitted.refused.push(...refused);
        } catch (cause) {
          if (cause instanceof OperationRefusedError && begin === 0) throw cause;
          throw interrupted(cause, begin, refunds.length);
        } finally {
          stopWaiting();
        }
      }
      print(terminal, submitted, options);
    });
}

function interrupted(cause: unknown, done: number, all: number): UnclearError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const text = `${why} ${done} of ${all} refunds were submitted before, and later ones may be under way. Submit the file again: nothing is sent twice.`;
  return new UnclearError(text, { cause });
}

function print(terminal: Terminal, { sent, refused }: Submitted, { json }: { json?: true }): void {
  if (json) terminal.out(formatJson({ sent: sent.map(toRefundRow), refused }));
  else if (sent.length > 0) {
    const rows = sent.map((refund) => [
      formatState(refund),
      formatAmount(refund, refund.amount),
      refund.payer,
      refund.id,
    ]);
    terminal.out(formatTable(terminal, [["state", "amount", "to", "id"], ...rows]));
  }
  for (const { id, message } of refused) terminal.err(`${id}: ${message}`);
  if (refused.length === 0) return;
  throw new Error(`${refused.length} of ${sent.length + refused.length} refunds were refused`);
}
