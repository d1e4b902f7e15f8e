import {
  type ChannelRecord,
  getChannelOperation,
  listChannelsOperation,
  type Money,
} from "@coinslot/facilitator";
import type { Network } from "@coinslot/protocol";
import { type Command, Option } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readLimit, readNetwork } from "../read-option.ts";
import { moneyText, runRead, safeText, timeText } from "../reads/run-read.ts";
import { formatFacts, formatJson, formatTable, paint, type Terminal } from "../terminal.ts";

/** Options of a command that reads a seller's ledger, where `isSeller` says so. */
export interface SellerOptions {
  seller?: true;
  ledger?: string;
  json?: true;
}

export interface SellerListOptions extends SellerOptions {
  show?: "all" | "unclaimed" | "withdrawing" | "lost";
  network?: Network;
  cursor?: string;
  limit: number;
}

/** Adds `--seller` and `--ledger`. */
export function addSellerOptions(command: Command): Command {
  return command
    .option("--seller", "of a seller: those of its ledger, beside the process that sells")
    .addOption(ledgerOption());
}

/** Adds the options of a seller's list. */
export function addListOptions(command: Command): Command {
  return addSellerOptions(command)
    .addOption(
      new Option("--show <which>", "of a seller: only these").choices([
        "all",
        "unclaimed",
        "withdrawing",
        "lost",
      ]),
    )
    .option("--network <network>", "of a seller: only those of this network", readNetwork)
    .option("--cursor <cursor>", "of a seller: cursor of the next page, as printed before")
    .option("--limit <number>", "of a seller: page size, at most 200", readLimit(200), 50);
}

/**
 * Whether a seller's channels are meant: `--ledger` and the options of its list mean them, too.
 *
 * @throws UsageError where a buyer's file is named as well
 */
export function isOfSeller(
  options: Partial<SellerListOptions> & { file?: string | undefined },
): boolean {
  const { seller, ledger, show, network, cursor, file } = options;
  const isSeller = [seller, ledger, show, network, cursor].some((option) => option !== undefined);
  if (isSeller && file !== undefined) {
    throw new UsageError("--file is of a buyer's channels, --seller of a seller's: give one.");
  }
  return isSeller;
}

/** Lists a seller's channels. */
export async function listSold(
  { terminal, io }: { terminal: Terminal; io: Io },
  { ledger, json, show, network, cursor, limit }: SellerListOptions,
): Promise<void> {
  const argument = { show, network, cursor, limit };
  const page = await runRead({ terminal, io, ledger }, listChannelsOperation, argument);
  if (json) return terminal.out(formatJson(page));
  if (page.channels.length === 0) return terminal.err("No matching channels.");
  const rows = page.channels.map((channel) => [
    channel.id.slice(0, 12),
    stateText(terminal, channel),
    ...[channel.charged, channel.claimed, channel.unclaimed, channel.atRisk].map(text),
    ...[channel.lost, channel.locked].map(text),
    timeText(channel.withdrawal?.deadline ?? null),
    channel.payer,
    safeText(channel.refusal?.error),
  ]);
  const heading = [
    ...["channel", "state", "charged", "claimed", "unclaimed", "at risk", "lost", "locked"],
    ...["deadline (UTC)", "payer", "claim refused"],
  ];
  terminal.out(formatTable(terminal, [heading, ...rows]));
  if (page.nextCursor !== null) terminal.err(`There are more: add --cursor ${page.nextCursor}`);
}

/** Shows one channel of a seller, with its history. */
export async function showSold(
  { terminal, io }: { terminal: Terminal; io: Io },
  id: string,
  { ledger, json }: SellerOptions,
): Promise<void> {
  const found = await runRead({ terminal, io, ledger }, getChannelOperation, { id });
  if (json) return terminal.out(formatJson(found));
  const { channel, steps, days } = found;
  terminal.out(formatFacts(terminal, factsOf(terminal, channel)));
  if (steps.length > 0) {
    const rows = steps.map(({ at, kind, state, amount, transaction, reason }) => [
      ...[timeText(at), kind, state, amount === null ? "-" : text(amount)],
      safeText(reason ?? transaction),
    ]);
    const heading = ["time (UTC)", "what", "state", "amount", "transaction or reason"];
    terminal.out(formatTable(terminal, [heading, ...rows]));
  }
  if (days.length > 0) {
    const rows = days.map(({ day, charges, charged }) => [day, `${charges}`, text(charged)]);
    terminal.out(formatTable(terminal, [["day", "charges", "charged"], ...rows]));
  }
}

function factsOf(terminal: Terminal, channel: ChannelRecord): Record<string, string> {
  const { withdrawal, refusal } = channel;
  return {
    channel: channel.id,
    state: stateText(terminal, channel),
    network: `${channel.network}, escrow ${channel.contract}`,
    payer: `${channel.payer}, signs by ${channel.payerAuthorizer}`,
    receiver: `${channel.receiver}, claims by ${channel.receiverAuthorizer}`,
    charged: text(channel.charged),
    claimed: text(channel.claimed),
    unclaimed: `${text(channel.unclaimed)}, since ${timeText(channel.unclaimedSince)}`,
    "at risk": text(channel.atRisk),
    lost: text(channel.lost),
    locked: text(channel.locked),
    withdrawal: withdrawal
      ? `${text(withdrawal.amount)}, from ${timeText(withdrawal.deadline)} UTC on`
      : `none; it would take ${channel.withdrawDelaySeconds} s`,
    "claim refused": refusal ? `${safeText(refusal.error)}, ${timeText(refusal.at)} UTC` : "-",
    "last charge": `${timeText(channel.lastChargeAt)} UTC`,
  };
}

function stateText(terminal: Terminal, { state, atRisk }: ChannelRecord): string {
  if (state === "owing" || atRisk.value !== "0") return paint(terminal, "red", state);
  return state === "open" ? paint(terminal, "green", state) : state;
}

/** An amount for people. */
export function text(money: Money): string {
  return moneyText([money]);
}
