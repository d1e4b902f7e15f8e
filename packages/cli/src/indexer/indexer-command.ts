import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { maintenanceCommand } from "./maintenance-command.ts";
import { indexerWebhooksCommand } from "./webhooks-command.ts";

/** `coinslot indexer`: the indexing service, until Ctrl-C. */
export function indexerCommand(terminal: Terminal, { progress }: Io): Command {
  return new Command("indexer")
    .option("--config <file>", "a YAML or JSON file with settings; default: INDEXER_CONFIG")
    .addHelpText(
      "after",
      `
Settings come from INDEXER_… variables and the file; the environment goes first. INDEXER_CHAINS with
COINSLOT_RPC_URL_<chain id> is enough to begin, or COINSLOT_NETWORK with COINSLOT_RPC_URL;
INDEXER_RPC_URLS_<CHAIN> goes before them. INDEXER_DATABASE is sqlite:./indexer.db unless said, and
INDEXER_PORT 8080. It ends with 1 when it cannot start, and says all that is in the way.

Examples:
  INDEXER_CHAINS=plasma COINSLOT_RPC_URL_9745=https://rpc.plasma.to coinslot indexer
  coinslot indexer --config indexer.yaml
  coinslot indexer verify --chain plasma`,
    )
    .action(async ({ config: file }: { config?: string }): Promise<void> => {
      // Lazy import: a web framework and a query builder are much for a help text.
      const { runIndexer } = await import("./run-indexer.ts");
      await runIndexer({ terminal, progress, file });
    })
    .addCommand(maintenanceCommand(terminal, "verify"))
    .addCommand(maintenanceCommand(terminal, "reindex"))
    .addCommand(maintenanceCommand(terminal, "rewind"))
    .addCommand(indexerWebhooksCommand(terminal));
}
