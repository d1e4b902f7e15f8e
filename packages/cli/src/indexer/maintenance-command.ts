import { Command, InvalidArgumentError } from "commander";
import type { Terminal } from "../terminal.ts";

type Kind = "verify" | "reindex" | "rewind";

interface MaintenanceOptions {
  chain: string;
  token?: string;
  from?: number;
  to?: number;
  config?: string;
}

const descriptions: Readonly<Record<Kind, string>> = {
  verify: "read final blocks once more, and repair transfers that differ from the chain",
  reindex: "delete final blocks, and read them again",
  rewind: "undo everything above a block, and follow the chain from there",
};

const explanations: Readonly<Record<Kind, string>> = {
  verify: `
The service does this by itself, once for each block. Readers see every transfer meanwhile; what was wrong is
mended, counted, and announced to readers of events.

Example:
  coinslot indexer verify --chain plasma --from 1000000`,
  reindex: `
The transfers of these blocks are missing until they are read again, and balances lack them. Use verify unless
the stored rows themselves are not to be trusted.

Example:
  coinslot indexer reindex --chain plasma --token usdt --from 1000000 --to 1100000`,
  rewind: `
For a chain that was reorganised deeper than maxRewindBlocks: the problem in its status names the block. Every
transfer that is taken back is announced as a retraction.

Example:
  coinslot indexer rewind --chain plasma --to 1234567`,
};

const shared = `
A service that runs on the same database does the work, and need not be stopped; without one this command takes
the writer's lease and does it. Ctrl-C ends the command; what is left is done by the next service that runs.`;

/**
 * `coinslot indexer verify`, `reindex` and `rewind`: manual runs of the service's own maintenance.
 */
export function maintenanceCommand(terminal: Terminal, kind: Kind): Command {
  const command = new Command(kind)
    .description(descriptions[kind])
    .requiredOption("--chain <name>", "the chain, as the service calls it");
  if (kind === "rewind") {
    command.requiredOption("--to <block>", "the last block that is kept", readBlock);
  } else {
    command
      .option("--token <name>", "one token of the chain; all unless set")
      .option("--from <block>", "the first block; default: the start block", readBlock)
      .option("--to <block>", "the last block; the newest final one unless set", readBlock);
  }
  return command.addHelpText("after", `${shared}${explanations[kind]}`).action(async () => {
    const options = command.optsWithGlobals<MaintenanceOptions>();
    const { chain, token, from = 0, to, config: file } = options;
    const wish =
      kind === "rewind" ? { kind, chain, from: (to ?? 0) + 1 } : { kind, chain, token, from, to };
    const { runIndexerMaintenance } = await import("./run-indexer-maintenance.ts");
    await runIndexerMaintenance({ terminal, file, wish });
  });
}

function readBlock(text: string): number {
  if (/^[0-9]{1,10}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be the number of a block.");
}
