import { Argument, Command } from "commander";
import type { Terminal } from "../terminal.ts";
import { bashScript } from "./bash-script.ts";
import { findPlaces } from "./command-places.ts";
import { fishScript } from "./fish-script.ts";
import { zshScript } from "./zsh-script.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/**
 * `coinslot completion`: a script that completes commands and options. It holds all of them. So the
 * tab key starts no program, and evaluates nothing that stands on the line.
 */
export function completionCommand(terminal: Terminal): Command {
  return new Command("completion")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(scripts)))
    .addHelpText(
      "after",
      `
Examples:
  echo 'source <(coinslot completion bash)' >> ~/.bashrc
  echo 'source <(coinslot completion zsh)' >> ~/.zshrc      # after compinit
  coinslot completion fish > ~/.config/fish/completions/coinslot.fish`,
    )
    .action((shell: keyof typeof scripts, _options: unknown, command: Command): void => {
      terminal.out(scripts[shell](findPlaces(command.parent ?? command)));
    });
}
