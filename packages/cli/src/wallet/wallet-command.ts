import { formatMoney } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import { readNetworks } from "../networks.ts";
import type { Surroundings } from "../surroundings.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { readBalances, type WalletBalance } from "./read-balances.ts";
import { readHolders } from "./read-holders.ts";

/** `coinslot wallet`: who the accounts of the environment are, and what they hold. */
export function walletCommand(terminal: Terminal, { showWaiting }: Surroundings): Command {
  return new Command("wallet")
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
The accounts come from FACILITATOR_…, SELLER_… (or PAY_TO) and WALLET_…, the networks from
COINSLOT_NETWORK with COINSLOT_RPC_URL, and COINSLOT_RPC_URL_<chain id> for more of them.
Ends with 1 when a network could not be asked.

Examples:
  coinslot wallet
  coinslot wallet --json`,
    )
    .action(async ({ json }: { json?: true }): Promise<void> => {
      const holders = readHolders(terminal.env);
      if (holders.length === 0) {
        throw new UsageError("There is no account: set WALLET_SEED_PHRASE, or run coinslot init.");
      }
      const networks = readNetworks(terminal.env);
      const stopWaiting = showWaiting("asking the chains");
      const asked = await Promise.allSettled(
        networks.map((network) => readBalances({ network, holders })),
      ).finally(stopWaiting);
      const balances = asked.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
      terminal.out(json ? formatJson(balances) : formatBalances(terminal, balances));
      const unreadable = asked.flatMap(({ status }, index) =>
        status === "rejected" ? [networks[index]?.name ?? ""] : [],
      );
      if (unreadable.length > 0) {
        throw new Error(`${unreadable.join(" and ")} could not be asked: coinslot doctor says why`);
      }
    });
}

function formatBalances(terminal: Terminal, balances: readonly WalletBalance[]): string {
  const rows = balances.map(({ role, address, networkName, symbol, amount, decimals }) => [
    role,
    address,
    networkName,
    amount === 0n
      ? paint(terminal, "dim", `0 ${symbol}`)
      : `${formatMoney(amount, decimals)} ${symbol}`,
  ]);
  return formatTable(terminal, [["who", "address", "network", "holds"], ...rows]);
}
