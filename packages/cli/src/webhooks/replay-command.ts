import { operateWebhooks } from "@coinslot/facilitator";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { addTimeOptions } from "../payments/filter-options.ts";
import type { Terminal } from "../terminal.ts";

interface ReplayOptions {
  id?: string;
  from?: number;
  to?: number;
  dead?: true;
  endpoint?: string;
  ledger?: string;
}

/** `coinslot webhooks replay`: delivers events again, with the same ids. */
export function replayCommand(terminal: Terminal, io: Io): Command {
  return addTimeOptions(new Command("replay"))
    .description("deliver events again, with the same ids: of a time, one, or the dead ones")
    .option("--id <event>", "this event alone, as in webhook-id")
    .option("--dead", "only those whose every attempt has failed")
    .option("--endpoint <id>", "to this receiver alone; default: to each that had them")
    .addHelpText(
      "after",
      `
Those that wait for their delivery already are left alone. A receiver drops what it has seen by
webhook-id.

Examples:
  coinslot webhooks replay --dead
  coinslot webhooks replay --from 2026-11-20T18:00Z --to 2026-11-20T19:00Z
  coinslot webhooks replay --id evt_42_0123456789abcdef`,
    )
    .action(async ({ ledger, dead, ...range }: ReplayOptions): Promise<void> => {
      const { id, from, to } = range;
      if (id === undefined && from === undefined && to === undefined && dead === undefined) {
        throw new UsageError("Nothing was replayed: add --from, --to, --id or --dead.");
      }
      const webhooks = operateWebhooks(readOperatorPlace(terminal, io, ledger));
      const replayed = await webhooks.replay({ ...range, deadOnly: dead });
      terminal.out(`${replayed} to be delivered again.`);
    });
}
