import { Command } from "commander";
import type { Terminal } from "../terminal.ts";

interface CreateOptions {
  owner: string;
  label?: string;
  ttl?: string;
  max?: string;
  timeWindow?: string;
  config?: string;
}

/** `coinslot keys`: the API keys of the indexing service, which may run meanwhile. */
export function keysCommand(terminal: Terminal): Command {
  const config = [
    "--config <file>",
    "the service's file with settings; default: INDEXER_CONFIG",
  ] as const;

  async function run(args: readonly string[], file: string | undefined): Promise<void> {
    const { runKeys } = await import("./run-keys.ts");
    await runKeys({ args, file, terminal });
  }

  const create = new Command("create")
    .description("create a key, and print it once")
    .requiredOption("--owner <name>", "owner of the key")
    .option("--label <words>", "purpose of the key")
    .option("--ttl <time>", "lifetime: 30d, 12h, 90m, 45s; default: no expiry")
    .option("--max <requests>", "raise its limits to this many requests, with --time-window")
    .option("--time-window <time>", "time window of --max, such as 10s")
    .option(...config)
    .addHelpText(
      "after",
      "\nExample:\n  coinslot keys create --owner shop --max 1000 --time-window 10s",
    )
    .action(({ owner, label, ttl, max, timeWindow, config }: CreateOptions) => {
      const wish = { owner, label, ttl, max, "time-window": timeWindow };
      return run(["create", ...toFlags(wish)], config);
    });
  const list = new Command("list")
    .description("list keys by their hashes; the keys themselves are not stored")
    .option("--owner <name>", "only those of this owner")
    .option("--json", "print JSON")
    .option(...config)
    .addHelpText("after", "\nExample:\n  coinslot keys list --owner shop --json")
    .action(({ owner, json, config }: { owner?: string; json?: true; config?: string }) =>
      run(["list", ...toFlags({ owner }), ...(json ? ["--json"] : [])], config),
    );
  const revoke = new Command("revoke")
    .description("revoke a key")
    .argument("<hash>", "as keys list shows it")
    .option(...config)
    .addHelpText("after", "\nExample:\n  coinslot keys revoke 5f4dcc3b5aa765d61d8327deb882cf99")
    .action((hash: string, { config }: { config?: string }) => run(["revoke", hash], config));

  return new Command("keys")
    .addHelpText("after", "\nThey are in the service's database: INDEXER_DATABASE, or the file's.")
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke);
}

function toFlags(options: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  );
}
