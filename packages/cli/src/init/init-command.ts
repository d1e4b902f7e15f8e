import { join, relative } from "node:path";
import { isNetwork } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { formatFacts, formatJson, paint, type Terminal } from "../terminal.ts";
import { createEnvironment } from "./create-environment.ts";
import { ignoreByGit } from "./ignore-by-git.ts";
import { writeEnvFile } from "./write-env-file.ts";

interface InitOptions {
  network: string;
  force?: true;
  json?: true;
}

const warnings = {
  tracked: "git has .env in its index: take it out with git rm --cached .env",
  unwritable: ".gitignore cannot be written, or is a link: make git ignore .env",
};

/** `coinslot init`: an .env file with fresh seeds, and the next steps. */
export function initCommand(terminal: Terminal, { folder }: Io): Command {
  return new Command("init")
    .option("--network <network>", "sell on this network", readNetwork, "eip155:9745")
    .option("--force", "replace an existing .env file; it is kept as a backup")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
The seeds are written to the file, which only you can read, and are never printed.

Examples:
  coinslot init
  coinslot init --network eip155:988`,
    )
    .action(async ({ network, force, json }: InitOptions): Promise<void> => {
      const created = createEnvironment(network);
      const file = join(folder, ".env");
      const backup = await writeEnvFile({ file, text: created.text, isReplacing: force === true });
      const ignored = await ignoreByGit(folder);
      const { relayer, seller, buyer, coin, token, isComplete } = created;
      if (json) return terminal.out(formatJson({ file, backup, network, relayer, seller, buyer }));

      terminal.err(`Wrote .env, which only you can read.`);
      if (backup) terminal.err(`The one before is ${relative(folder, backup)}.`);
      if (ignored === "added") terminal.err("Added such files to .gitignore.");
      if (ignored === "tracked" || ignored === "unwritable") {
        terminal.err(`${paint(terminal, "yellow", "warning:")} ${warnings[ignored]}`);
      }
      terminal.out(
        formatFacts(terminal, {
          relayer: `${relayer}  pays for gas: send it some ${coin}`,
          seller: `${seller}  is paid: needs nothing`,
          buyer: `${buyer}  pays for what it buys: send it some ${token}, no ${coin}`,
        }),
      );
      const steps = [
        ...(isComplete ? [] : ["put an RPC endpoint of your network into .env: COINSLOT_RPC_URL"]),
        "keep a backup of .env: its seeds control the money",
        `send ${coin} to the relayer, and ${token} to the buyer if you want to buy`,
        "coinslot wallet    shows what has arrived",
        "coinslot doctor    checks the configuration",
        "coinslot allow     allows the values of this .env, after each change",
        "coinslot pay <url> buys something",
      ];
      const numbered = steps.map((step, index) => `  ${index + 1}. ${step}`);
      terminal.out(`\nNext:\n${numbered.join("\n")}`);
    });
}

function readNetwork(text: string): string {
  if (!isNetwork(text)) throw new InvalidArgumentError("expected a network such as eip155:9745");
  return text;
}
