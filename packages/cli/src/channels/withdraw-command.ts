import { createPayingFetch } from "@coinslot/client";
import { Command } from "commander";
import { requireAllowed } from "../allow/require-allowed.ts";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readNetworks } from "../networks.ts";
import { readSpendableTokens, toBudget } from "../pay/spendable-tokens.ts";
import { readWallet } from "../read-secret.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import { channelFile, fileOption, findChannel, readNodes } from "./channel-file.ts";
import { describeReturn } from "./describe-return.ts";
import { factsOf } from "./show-command.ts";

interface WithdrawOptions {
  file?: string;
  yes?: true;
  json?: true;
}

/** `coinslot channels withdraw`: brings back what a channel has not charged. */
export function withdrawCommand(terminal: Terminal, io: Io): Command {
  return new Command("withdraw")
    .description("take back what a payment channel has not charged, with the seller or without it")
    .argument("<id>", "its id, or the beginning of it")
    .addOption(fileOption())
    .option("--yes", "do it without a prompt")
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Asks the seller for a refund first: that costs no gas. Where it does not give back all, a withdrawal begins
by a transaction of the wallet. The seller has the channel's delay to claim what it is owed; then run the
same command again, for a second transaction. Charged money stays the seller's.

The wallet comes from WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, the nodes from COINSLOT_NETWORK with
COINSLOT_RPC_URL, and COINSLOT_RPC_URL_<chain id>.

Example:
  coinslot channels withdraw 0x72e955e869`,
    )
    .action(async (id: string, options: WithdrawOptions): Promise<void> => {
      const isSilent = options.yes === true;
      const agreed = await requireAllowed(terminal, { mayAsk: !isSilent });
      const wallet = readWallet(agreed.env);
      if (wallet === undefined)
        throw new UsageError("Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY.");
      const file = channelFile(io, options.file);
      const rpcUrls = readNodes(agreed.env);
      const channel = await findChannel({ file, id, rpcUrls });
      terminal.err(formatFacts(terminal, factsOf(channel)));
      if (!isSilent) await ask(terminal);
      const tokens = await readSpendableTokens(readNetworks(agreed.env));
      const budget = toBudget(tokens, "0");
      const client = createPayingFetch({ account: wallet, rpcUrls, budget, channels: { file } });
      const stopWaiting = io.showWaiting("asking the seller and the chain");
      const result = await (async () => {
        if (channel.onChain?.withdrawal) return client.withdrawChannel(channel.id);
        const asked = { orWithdraw: true, id: channel.id, signal: terminal.signal };
        const [returned] = await client.refundChannel(channel.url, asked);
        if (returned === undefined)
          throw new UsageError("The wallet is not the payer of this channel.");
        return returned;
      })().finally(stopWaiting);
      terminal.out(options.json ? formatJson(result) : describeReturn(channel, result));
    });
}

async function ask(terminal: Terminal): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to withdraw without a prompt.");
  }
  if (!(await terminal.confirm("Take it back?"))) throw new UsageError("Nothing was withdrawn.");
}
