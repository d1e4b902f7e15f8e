import type { StoredChannel } from "@coinslot/client";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { printable } from "../pay/printable.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import {
  amountText,
  channelFile,
  fileOption,
  findChannel,
  readNodes,
  stateOf,
  timeText,
} from "./channel-file.ts";
import { addSellerOptions, isOfSeller, type SellerOptions, showSold } from "./seller-channels.ts";

/**
 * `coinslot channels show`: one channel, of a buyer's file and the chain, or of a seller's ledger.
 */
export function showCommand(terminal: Terminal, io: Io): Command {
  return addSellerOptions(new Command("show"))
    .description("show one payment channel: a buyer's, or a seller's with its history")
    .argument("<id>", "its id, or the beginning of it")
    .addOption(fileOption())
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
A buyer's is of its file, and of the nodes of COINSLOT_NETWORK with COINSLOT_RPC_URL, and
COINSLOT_RPC_URL_<chain id>. A seller's is of its ledger.

Examples:
  coinslot channels show 0x72e955e869
  coinslot channels show 0x72e955e869 --seller`,
    )
    .action(async (id: string, options: SellerOptions & { file?: string }): Promise<void> => {
      if (isOfSeller(options)) return showSold({ terminal, io }, id, options);
      const rpcUrls = readNodes(terminal.env);
      const channel = await findChannel({ file: channelFile(io, options.file), id, rpcUrls });
      terminal.out(options.json ? formatJson(channel) : formatFacts(terminal, factsOf(channel)));
    });
}

/** Facts of a channel for people. */
export function factsOf(channel: StoredChannel): Record<string, string> {
  const { onChain, origin, receiver, payer, network, withdrawDelay } = channel;
  const show = (amount: bigint) => amountText(channel, amount);
  const withdrawal = onChain?.withdrawal;
  return {
    channel: channel.id,
    state: stateOf(channel),
    seller: `${printable(origin)}, paid at ${receiver}`,
    payer: `${payer} on ${network}`,
    charged: show(channel.charged),
    "seller may claim": `${show(channel.ceiling)} at most, in all`,
    locked: show(channel.locked),
    ...(channel.depositing > 0n ? { depositing: show(channel.depositing) } : {}),
    "on the chain": onChain
      ? `${show(onChain.balance)} deposited, ${show(onChain.claimed)} of it claimed`
      : "unknown: no configured node of its network returned it",
    withdrawal: withdrawal
      ? `${show(withdrawal.amount)}, to be finished from ${timeText(withdrawal.finalizeAfter * 1000)} UTC on`
      : `none; it would take ${withdrawDelay} s`,
    "last used": `${timeText(channel.usedAt)} UTC`,
  };
}
