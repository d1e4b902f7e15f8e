import { operateWebhooks, type WebhookStanding } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { showUnsafe } from "../safe-text.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";

/** `coinslot webhooks list`: each receiver, and what waits for it. */
export function listCommand(terminal: Terminal, io: Io): Command {
  return new Command("list")
    .description("list receivers, what waits for them, and what is dead")
    .addOption(ledgerOption())
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
A secret shows as the first digits of its hash: during a rotation, all sellers must have the new one
before its receiver drops the old one.

Examples:
  coinslot webhooks list
  coinslot webhooks list --json`,
    )
    .action(async ({ ledger, json }: { ledger?: string; json?: true }): Promise<void> => {
      const endpoints = await operateWebhooks(readOperatorPlace(terminal, io, ledger)).list();
      if (json) return terminal.out(formatJson({ endpoints }));
      if (endpoints.length === 0) return terminal.err("This ledger has no webhooks.");
      terminal.out(
        formatTable(terminal, [
          ["id", "url", "pending", "oldest", "dead", "secrets"],
          ...endpoints.map((each) => toRow(terminal, each)),
        ]),
      );
    });
}

function toRow(terminal: Terminal, endpoint: WebhookStanding): string[] {
  const { id, url, isEnabled, pending, dead, secrets, oldestPendingMs } = endpoint;
  return [
    id,
    showUnsafe(url) + (isEnabled ? "" : paint(terminal, "dim", " (ended)")),
    String(pending),
    oldestPendingMs === undefined ? "" : `${Math.round(oldestPendingMs / 1_000)} s`,
    dead === 0 ? "0" : paint(terminal, "red", String(dead)),
    secrets.join(" "),
  ];
}
