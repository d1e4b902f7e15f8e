import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import { addTimeRange } from "../payments/filter-options.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import type { IndexerWebhooksTask } from "./run-indexer-webhooks.ts";

interface Options {
  receiver?: string;
  config?: string;
  file?: string;
  id?: string;
  from?: number;
  to?: number;
  dead?: true;
  json?: true;
}

const maxDead = 100;

/**
 * `coinslot indexer webhooks`: watched addresses and their receivers, beside a service that runs.
 */
export function indexerWebhooksCommand(terminal: Terminal): Command {
  return new Command("webhooks")
    .description("watch addresses, and see what waits for their receivers")
    .addHelpText(
      "after",
      "\nReceivers are settings of the service: INDEXER_WEBHOOK_URL, or webhooks in its file. Addresses are in its database.",
    )
    .addCommand(addressesCommand(terminal, "watch"))
    .addCommand(addressesCommand(terminal, "unwatch"))
    .addCommand(listAddressesCommand(terminal))
    .addCommand(listCommand(terminal))
    .addCommand(deadCommand(terminal))
    .addCommand(replayCommand(terminal))
    .addCommand(testCommand(terminal));
}

async function run(terminal: Terminal, options: Options, task: IndexerWebhooksTask): Promise<void> {
  await open(terminal, { ...options, readOnly: false }, task);
}

/** The same for a task that changes nothing. */
async function read(
  terminal: Terminal,
  options: Options,
  task: IndexerWebhooksTask,
): Promise<void> {
  await open(terminal, { ...options, readOnly: true }, task);
}

/** Lazy import: a query builder is much for a help text. */
async function open(
  terminal: Terminal,
  { config: file, receiver, readOnly }: Options & { readOnly: boolean },
  task: IndexerWebhooksTask,
): Promise<void> {
  const { runIndexerWebhooks } = await import("./run-indexer-webhooks.ts");
  await runIndexerWebhooks({ terminal, file, receiver, readOnly }, task);
}

function receiverOption(command: Command): Command {
  return command.option("--receiver <id>", "of this receiver; needed where there are several");
}

function addressesCommand(terminal: Terminal, verb: "watch" | "unwatch"): Command {
  const purpose =
    verb === "watch"
      ? "tell a receiver about the transfers of addresses, from the next block on"
      : "stop that; the outcome of transfers already sent still follows";
  const command = new Command(verb)
    .description(purpose)
    .argument("[addresses...]", "0x and 40 hex digits")
    .option("--file <file>", "a text file with one address a line");
  return receiverOption(command)
    .addHelpText(
      "after",
      `
A receiver watches at most 100,000 addresses. A wrong address in the list changes nothing.

Example:
  coinslot indexer webhooks ${verb} 0x90F79bf6EB2c4f870365E785982E1f101E93b906`,
    )
    .action(async (addresses: string[]): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      await run(terminal, options, async (webhooks, { receiver, readAddresses }) => {
        const all = [...addresses, ...(await readAddresses(options.file))];
        if (all.length === 0) throw new UsageError("Missing argument: addresses, or --file.");
        const id = await receiver();
        if (verb === "watch") terminal.out(`${await webhooks.watch(id, all)} new addresses.`);
        else terminal.out(`${await webhooks.unwatch(id, all)} addresses removed.`);
      });
    });
}

function listAddressesCommand(terminal: Terminal): Command {
  const command = new Command("addresses").description("print the watched addresses, one a line");
  return receiverOption(command)
    .addHelpText("after", "\nExample:\n  coinslot indexer webhooks addresses > customers.txt")
    .action(async (): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      await read(terminal, options, async (webhooks, { receiver }) => {
        const id = await receiver();
        let after: string | undefined;
        do {
          const page = await webhooks.addresses(id, { after });
          if (page.length > 0) terminal.out(page.join("\n"));
          after = page.at(-1);
        } while (after !== undefined);
      });
    });
}

function listCommand(terminal: Terminal): Command {
  const command = new Command("list")
    .description("list receivers, their addresses, what waits and what is dead")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample:\n  coinslot indexer webhooks list")
    .action(async (): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      await read(terminal, options, async (webhooks, { showReceivers }) => {
        const receivers = await webhooks.list();
        if (options.json) return terminal.out(formatJson({ receivers }));
        showReceivers(receivers);
      });
    });
  return command;
}

function deadCommand(terminal: Terminal): Command {
  const command = new Command("dead")
    .description("list events whose every attempt has failed, the last ones first")
    .option("--receiver <id>", "only those of this receiver")
    .option("--json", "print JSON")
    .addHelpText("after", `\nAt most ${maxDead}.\n\nExample:\n  coinslot indexer webhooks dead`)
    .action(async (): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      await read(terminal, options, async (webhooks, { showDead }) => {
        const dead = await webhooks.dead({ receiver: options.receiver, limit: maxDead });
        if (options.json) return terminal.out(formatJson({ dead }));
        showDead(dead);
      });
    });
  return command;
}

function replayCommand(terminal: Terminal): Command {
  const command = addTimeRange(new Command("replay"))
    .description("deliver events again, with the same ids: of a time, one, or the dead ones")
    .option("--id <event>", "this event alone, as in webhook-id")
    .option("--dead", "only those whose every attempt has failed")
    .option("--receiver <id>", "to this receiver alone; default: to each that had them")
    .addHelpText("after", "\nExample:\n  coinslot indexer webhooks replay --dead")
    .action(async (): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      const { id, from, to, dead, receiver } = options;
      if (id === undefined && from === undefined && to === undefined && dead === undefined)
        throw new UsageError("Nothing was replayed: add --from, --to, --id or --dead.");
      await run(terminal, options, async (webhooks) => {
        const replayed = await webhooks.replay({ receiver, id, from, to, deadOnly: dead });
        terminal.out(`${replayed} to be delivered again.`);
      });
    });
  return command;
}

function testCommand(terminal: Terminal): Command {
  const command = new Command("test")
    .description("send the event webhook.test to a receiver, or to all")
    .option("--receiver <id>", "to this receiver alone")
    .addHelpText(
      "after",
      "\nA running service delivers it as any other event.\n\nExample:\n  coinslot indexer webhooks test",
    )
    .action(async (): Promise<void> => {
      const options = command.optsWithGlobals<Options>();
      await run(terminal, options, async (webhooks) => {
        const receivers = await webhooks.test(options.receiver);
        terminal.out(`webhook.test goes to ${receivers.join(", ")}.`);
      });
    });
  return command;
}
