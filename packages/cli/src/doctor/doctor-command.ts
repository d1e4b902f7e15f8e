import { Command } from "commander";
import type { Io } from "../io.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import type { Check } from "./check.ts";
import { checkLedger, findLedger } from "./check-ledger.ts";
import { checkNetwork } from "./check-network.ts";
import { checkSettings } from "./check-settings.ts";

/** `coinslot doctor`: checks everything that has to work, and names the remedies. */
export function doctorCommand(terminal: Terminal, io: Io): Command {
  return new Command("doctor")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Looks at what COINSLOT_NETWORK, COINSLOT_RPC_URL, COINSLOT_RPC_URL_<chain id>, COINSLOT_TOKENS,
FACILITATOR_…, SELLER_…, PAY_TO, WALLET_… and COINSLOT_LEDGER say. Sends nothing, changes nothing, and
may run beside a seller. Ends with 1 when something is broken; warnings do not count.

Examples:
  coinslot doctor
  coinslot doctor --json`,
    )
    .action(async ({ json }: { json?: true }): Promise<void> => {
      const { checks: settings, networks, relayer, payTo } = checkSettings(terminal.env, io);
      const ledgerUrl = findLedger(terminal.env, io);
      const recipient = payTo && ledgerUrl ? { payTo, ledgerUrl } : undefined;
      const stopWaiting = io.showWaiting("looking");
      const others = await Promise.all([
        ...networks.map((network) => checkNetwork({ network, relayer, recipient, now: Date.now })),
        checkLedger(terminal.env, io),
      ]).finally(stopWaiting);
      const checks = [...settings, ...others.flat()];
      const broken = checks.filter(({ status }) => status === "broken").length;
      terminal.out(
        json ? formatJson({ isWell: broken === 0, checks }) : formatChecks(terminal, checks),
      );
      if (broken === 0) return;
      throw new Error(broken === 1 ? "One thing is broken." : `${broken} things are broken.`);
    });
}

function formatChecks(terminal: Terminal, checks: readonly Check[]): string {
  const rows = checks.map(({ topic, about = "", status, found }) => [
    formatStatus(terminal, status),
    topic,
    about,
    found,
  ]);
  return formatTable(terminal, [["", "what", "where", "found"], ...rows]);
}

function formatStatus(terminal: Terminal, status: Check["status"]): string {
  switch (status) {
    case "ok":
      return paint(terminal, "green", "ok");
    case "warning":
      return paint(terminal, "yellow", "warning");
    case "broken":
      return paint(terminal, "red", "broken");
    case "skipped":
      return paint(terminal, "dim", "skipped");
  }
}
