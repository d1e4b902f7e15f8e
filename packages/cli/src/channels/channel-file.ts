import { dirname, join, resolve } from "node:path";
import { readChannels, type StoredChannel } from "@coinslot/client";
import { isHttpUrl } from "@coinslot/hosting/environment";
import { findKnownToken, formatMoney, type Network, symbolOf } from "@coinslot/protocol";
import { Option } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { readNetworks } from "../networks.ts";
import type { Terminal } from "../terminal.ts";

/** `--file`: the file of a buyer's channels. */
export function fileOption(): Option {
  return new Option(
    "--file <path>",
    "the file that `channels.file` of the buyer names; default: that of coinslot pay",
  );
}

/** @throws UsageError without a file */
export function channelFile({ folder, historyFile }: Io, given: string | undefined): string {
  if (given !== undefined) return resolve(folder, given);
  if (historyFile === undefined) throw new UsageError("Name the file of the channels: --file.");
  return join(dirname(historyFile), "channels.db");
}

/** The nodes that the environment names, by network. */
export function readNodes(env: Terminal["env"]): Record<Network, string[]> {
  const networks = readNetworks(env);
  return Object.fromEntries(
    networks.map(({ network, rpcUrls }) => [network, rpcUrls.filter(isHttpUrl)]),
  );
}

/**
 * Finds a channel by its id, or by the beginning of it.
 *
 * @throws UsageError when there is none, or more than one
 */
export async function findChannel(options: {
  file: string;
  id: string;
  rpcUrls: Record<Network, string[]>;
}): Promise<StoredChannel> {
  const { file, rpcUrls } = options;
  const wanted = options.id.toLowerCase();
  const found = (await readChannels({ file })).filter(({ id }) => id.startsWith(wanted));
  const [one] = found;
  if (one === undefined || found.length > 1 || wanted.length < 6) {
    throw new UsageError(`${found.length} channels begin with ${options.id}: see the list.`);
  }
  const [channel = one] = await readChannels({ file, id: one.id, rpcUrls });
  return channel;
}

/** An amount in the token of a channel, such as `0.001 USDT0`. */
export function amountText(
  { network, token }: Pick<StoredChannel, "network" | "token">,
  amount: bigint,
): string {
  const known = findKnownToken(network, token);
  if (known === undefined) return `${amount} units of ${token}`;
  return `${formatMoney(amount, known.decimals)} ${symbolOf(known)}`;
}

/** A time for people, to the minute in UTC. A node may name one beyond all dates. */
export function timeText(ms: number): string {
  return new Date(Math.min(ms, 8_640_000_000_000_000)).toISOString().slice(0, 16).replace("T", " ");
}

/** State of a channel in a word. */
export function stateOf({ isWithdrawing, depositing, locked }: StoredChannel): string {
  if (isWithdrawing) return "withdrawing";
  if (depositing > 0n) return "depositing";
  return locked > 0n ? "open" : "empty";
}
