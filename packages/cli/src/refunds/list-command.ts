import {
  listRefundsOperation,
  type RefundState,
  refundStates,
  runOperation,
} from "@coinslot/facilitator";
import type { Address, Network } from "@coinslot/protocol";
import { Command, Option } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { readAddress, readLimit, readNetwork } from "../read-option.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { formatAmount, formatState, toRefundRow } from "./refund-text.ts";

interface ListOptions {
  payment?: string;
  payer?: Address;
  network?: Network;
  state?: RefundState;
  limit: number;
  cursor?: string;
  ledger?: string;
  json?: true;
}

/** `coinslot refunds list`: a page of refunds, the newest first. */
export function listCommand(terminal: Terminal, io: Io): Command {
  return new Command("list")
    .description("list refunds, the newest first")
    .option("--payment <id>", "only those of this payment")
    .option("--payer <address>", "only those to this payer", readAddress)
    .option("--network <network>", "only those on this network, such as eip155:9745", readNetwork)
    .addOption(new Option("--state <state>", "only those in this state").choices(refundStates))
    .option("--limit <number>", "page size, at most 1000", readLimit(1_000), 50)
    .option("--cursor <cursor>", "cursor of the next page, as printed by the previous one")
    .addOption(ledgerOption())
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
Examples:
  coinslot refunds list
  coinslot refunds list --state unsigned
  coinslot refunds list --payment 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --json`,
    )
    .action(async ({ ledger, json, ...filter }: ListOptions): Promise<void> => {
      const place = readOperatorPlace(terminal, io, ledger);
      const { refunds, nextCursor = null } = await runOperation(
        place,
        listRefundsOperation,
        filter,
      );
      if (json) return terminal.out(formatJson({ refunds: refunds.map(toRefundRow), nextCursor }));
      if (refunds.length === 0) return terminal.err("No matching refunds.");
      const rows = refunds.map((refund) => [
        new Date(refund.createdAt).toISOString().slice(0, 19).replace("T", " "),
        paintState(terminal, refund),
        formatAmount(refund, refund.amount),
        refund.payer,
        refund.network,
        refund.route ?? "-",
        refund.id,
      ]);
      const heading = ["time (UTC)", "state", "amount", "to", "network", "route", "id"];
      terminal.out(formatTable(terminal, [heading, ...rows]));
      if (nextCursor !== null) terminal.err(`There are more: add --cursor ${nextCursor}`);
    });
}

function paintState(
  terminal: Terminal,
  refund: { state: string; cause?: string | undefined },
): string {
  const text = formatState(refund);
  if (refund.state === "confirmed" || refund.state === "final") {
    return paint(terminal, "green", text);
  }
  return refund.state === "blocked" || refund.state === "void"
    ? paint(terminal, "red", text)
    : text;
}
