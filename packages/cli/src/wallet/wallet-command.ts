import { findNetworks } from "@coinslot/hosting/environment";
import { formatMoney } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { readBalances, type WalletBalance } from "./read-balances.ts";
import { type Holder, readHolders } from "./read-holders.ts";

/** `coinslot wallet`: the accounts of the environment, and their balances. */
export function walletCommand(terminal: Terminal, { showWaiting }: Io): Command {
  return new Command("wallet")
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Without a network, or one that answers, it shows the addresses. The accounts come from FACILITATOR_…, SELLER_… (or PAY_TO) and WALLET_…, the networks from
COINSLOT_NETWORK with COINSLOT_RPC_URL, and COINSLOT_RPC_URL_<chain id> for more of them.
Ends with 1 when a network could not be reached.

Examples:
  coinslot wallet
  coinslot wallet --json`,
    )
    .action(async ({ json }: { json?: true }): Promise<void> => {
      const holders = readHolders(terminal.env);
      if (holders.length === 0) {
        throw new UsageError(
          "No account is configured: set WALLET_SEED_PHRASE, or run coinslot init.",
        );
      }
      const problems: string[] = [];
      const networks = findNetworks(terminal.env, (problem) => problems.push(problem));
      if (problems.length > 0 || networks.length === 0) {
        // The addresses need no chain, and are often enough: they show where to send gas.
        terminal.out(json ? formatJson(holders) : formatHoldings(terminal, holders));
        if (problems.length > 0) throw new UsageError(problems.join("\n"));
        return terminal.err(noNetwork);
      }
      const stopWaiting = showWaiting("asking the chains");
      const asked = await Promise.allSettled(
        networks.map((network) => readBalances({ network, holders })),
      ).finally(stopWaiting);
      const holdings = asked.flatMap((each, index): readonly Holding[] => {
        if (each.status === "fulfilled") return each.value;
        const away = networks[index];
        const of = away === undefined ? {} : { network: away.network, networkName: away.name };
        return holders.map((holder) => ({ ...holder, ...of }));
      });
      terminal.out(json ? formatJson(holdings) : formatHoldings(terminal, holdings));
      const unreadable = asked.flatMap(({ status }, index) =>
        status === "rejected" ? [networks[index]?.name ?? ""] : [],
      );
      if (unreadable.length > 0) {
        throw new Error(`${unreadable.join(" and ")} could not be reached: see coinslot doctor`);
      }
    });
}

/** A holder's balances on the chains that answered. */
type Holding = Holder & Partial<WalletBalance>;

const noNetwork =
  "No network is configured, so balances are unknown: set COINSLOT_NETWORK and COINSLOT_RPC_URL.";

function formatHoldings(terminal: Terminal, holdings: readonly Holding[]): string {
  const rows = holdings.map(({ role, address, networkName = "-", symbol, amount, decimals }) => [
    role,
    address,
    networkName,
    amount === undefined || decimals === undefined
      ? paint(terminal, "dim", "not known")
      : amount === 0n
        ? paint(terminal, "dim", `0 ${symbol}`)
        : `${formatMoney(amount, decimals)} ${symbol}`,
  ]);
  return formatTable(terminal, [["who", "address", "network", "holds"], ...rows]);
}
