import { type BridgeChain, checkChain, usdt0Chains } from "@coinslot/bridge";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { rpcUrlOption } from "./bridge-options.ts";
import { toCliError } from "./use-bridge.ts";

interface ChainsOptions {
  check?: true;
  rpcUrl?: string[];
  json?: true;
}

/** `coinslot bridge chains`: the chain table, and a check of one row. */
export function chainsCommand(terminal: Terminal): Command {
  return new Command("chains")
    .description("list the known chains of the bridge")
    .option("--check", "compare a row of the table with the chain behind --rpc-url")
    .addOption(rpcUrlOption())
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Examples:
  coinslot bridge chains
  coinslot bridge chains --check --rpc-url https://arb1.arbitrum.io/rpc`,
    )
    .action(async ({ check, rpcUrl, json }: ChainsOptions) => {
      if (!check) {
        terminal.out(json ? formatJson(usdt0Chains) : formatChains(terminal));
        return;
      }
      if (rpcUrl === undefined) throw new UsageError("--check needs --rpc-url.");
      const { chain, contracts } = await checkChain({ rpcUrl }).catch((error: unknown) => {
        throw toCliError(error);
      });
      const problems = contracts.flatMap((contract) => contract.problems);
      if (json) terminal.out(formatJson({ chain: chain.key, contracts }));
      else {
        const rows = contracts.map(({ kind, contract, token, problems }) => [
          kind,
          contract,
          token ?? "none",
          problems.length === 0 ? paint(terminal, "green", "as listed") : problems.join("; "),
        ]);
        terminal.out(`${chain.name}, chain id ${chain.chainId}`);
        terminal.out(formatTable(terminal, [["network", "contract", "its token", ""], ...rows]));
      }
      if (problems.length > 0) throw new Error("The chain table is not true for this chain.");
    });
}

function formatChains(terminal: Terminal): string {
  const rows = usdt0Chains.map((chain) => [
    chain.key,
    chain.name,
    chain.type === "evm" ? String(chain.chainId) : "",
    tokensOf(chain),
    chain.nativeToken,
    chain.type === "evm" ? "" : "target only",
  ]);
  const heading = ["key", "chain", "chain id", "tokens", "gas in", ""];
  return formatTable(terminal, [heading, ...rows]);
}

function tokensOf(chain: BridgeChain): string {
  const has = (kind: "oft" | "legacyMesh" | "xautOft") =>
    chain.type === "evm" ? chain.contracts[kind] !== undefined : chain.reachedBy.includes(kind);
  const names = [has("oft") && "USDT0", has("legacyMesh") && "USDT", has("xautOft") && "XAUT0"];
  return names.filter(Boolean).join(", ");
}
