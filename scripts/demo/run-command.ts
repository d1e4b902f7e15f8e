import { runCli } from "@coinslot/cli";
import type { Market } from "./market.ts";
import { paint } from "./print.ts";

/** Runs a command of `coinslot` beside the seller, and prints it with its output. */
export async function runCommand(
  { devnet, ledger }: Pick<Market, "devnet" | "ledger">,
  args: readonly string[],
): Promise<void> {
  console.log(`   ${paint("dim", "$")} coinslot ${args.map(quote).join(" ")}`);
  const print = (text: string) => console.log(text.replaceAll(/^(?=.)/gm, "     "));
  const code = await runCli([...args], {
    out: print,
    err: print,
    confirm: undefined,
    isColourful: false,
    env: {
      COINSLOT_LEDGER: ledger,
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
    },
    signal: new AbortController().signal,
  });
  if (code !== 0) throw new Error(`coinslot ${args.join(" ")} ended with ${code}.`);
}

function quote(argument: string): string {
  return /^[\w./:-]+$/.test(argument) ? argument : `"${argument}"`;
}
