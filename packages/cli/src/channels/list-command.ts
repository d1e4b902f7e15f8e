import { readChannels } from "@coinslot/client";
import { Command } from "commander";
import type { Io } from "../io.ts";
import { printable } from "../pay/printable.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import { amountText, channelFile, fileOption, stateOf, timeText } from "./channel-file.ts";
import { addListOptions, isOfSeller, listSold, type SellerListOptions } from "./seller-channels.ts";

/**
 * `coinslot channels list`: a page of a seller's channels, or all channels of a file, with what is
 * locked in them.
 */
export function listCommand(terminal: Terminal, io: Io): Command {
  return addListOptions(new Command("list"))
    .description("list payment channels: a buyer's of its file, or a seller's of its ledger")
    .addOption(fileOption())
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Asks no chain. A buyer's locked money is in escrow and not charged: it comes back by coinslot channels
withdraw. A seller's unclaimed money is at risk while the payer withdraws, until the deadline.

Examples:
  coinslot channels list
  coinslot channels list --file ./channels.db
  coinslot channels list --seller
  coinslot channels list --seller --show withdrawing`,
    )
    .action(async (options: SellerListOptions & { file?: string }): Promise<void> => {
      if (isOfSeller(options)) return listSold({ terminal, io }, options);
      const channels = await readChannels({ file: channelFile(io, options.file) });
      if (options.json) {
        return terminal.out(
          formatJson({ channels: channels.map(({ onChain: _, ...rest }) => rest) }),
        );
      }
      if (channels.length === 0) return terminal.err("This file has no channels.");
      const rows = channels.map((channel) => [
        channel.id.slice(0, 12),
        stateOf(channel),
        amountText(channel, channel.locked),
        amountText(channel, channel.charged),
        printable(channel.origin),
        timeText(channel.usedAt),
      ]);
      const heading = ["channel", "state", "locked", "charged", "seller", "last used (UTC)"];
      terminal.out(formatTable(terminal, [heading, ...rows]));
    });
}
