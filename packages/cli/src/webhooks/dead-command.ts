import { type DeadWebhook, operateWebhooks } from "@coinslot/facilitator";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { showUnsafe } from "../safe-text.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";

const maxListed = 100;

/** `coinslot webhooks dead`: events whose every attempt has failed. */
export function deadCommand(terminal: Terminal, io: Io): Command {
  return new Command("dead")
    .description("list events whose every attempt has failed, the last ones first")
    .option("--endpoint <id>", "only those of this receiver")
    .addOption(ledgerOption())
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
At most ${maxListed}. They stay for 90 days, and coinslot webhooks replay delivers them again.

Examples:
  coinslot webhooks dead
  coinslot webhooks dead --json`,
    )
    .action(async (options: { endpoint?: string; ledger?: string; json?: true }): Promise<void> => {
      const { endpoint, ledger, json } = options;
      const place = readOperatorPlace(terminal, io, ledger);
      const dead = await operateWebhooks(place).dead({ endpoint, limit: maxListed });
      if (json) return terminal.out(formatJson({ dead }));
      if (dead.length === 0) return terminal.err("No event is dead.");
      const heading = ["time (UTC)", "event", "type", "payment", "attempts", "error", "receiver"];
      terminal.out(formatTable(terminal, [heading, ...dead.map(toRow)]));
      terminal.err("coinslot webhooks replay --dead delivers them again.");
    });
}

function toRow(dead: DeadWebhook): string[] {
  const { createdAt, id, type, key, attempts, error, endpoint } = dead;
  const time = new Date(createdAt).toISOString().slice(0, 19).replace("T", " ");
  return [time, id, type, key, String(attempts), showUnsafe(error), endpoint];
}
