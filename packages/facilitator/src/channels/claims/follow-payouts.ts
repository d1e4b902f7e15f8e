import {
  addressSchema,
  bytes32Schema,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { toEventSelector } from "viem";
import * as z from "zod";
import {
  beginPayouts,
  type Payout,
  postPayouts,
  readPayoutProgress,
} from "../../ledger/channels/channel-payouts.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readEvents } from "../watch/read-events.ts";
import { type KnownReceivers, receiversOf } from "./receivers-of.ts";

const settledTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
);

/** Blocks of one request. */
const blocksAtOnce = 1_000;
/** Requests of one look, at most: the next look goes on. */
const maxRequests = 50;

const quantity = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,13}$/)
  .transform(Number);

const settledSchema = z.array(
  z.object({
    address: addressSchema,
    topics: z.tuple([bytes32Schema, bytes32Schema, bytes32Schema, bytes32Schema]),
    data: bytes32Schema,
    transactionHash: bytes32Schema,
    blockHash: bytes32Schema,
    blockNumber: quantity,
    logIndex: quantity,
  }),
);

/**
 * Posts the money that the escrow has sent to receivers of claimed channels, once its block is
 * final. Anyone may have asked for it. It goes on where an earlier look ended, so none is left out
 * after a pause.
 *
 * @throws RpcError, ZodError, DatabaseError; what was posted stays
 */
export async function followPayouts(
  channels: ChannelsContext,
  memory: KnownReceivers,
): Promise<void> {
  const { context, settlement, place } = channels;
  const { ledger } = context;
  const { network } = settlement;
  const head = await network.watcher.read(network.pollMs);
  const final = Number(head.number) - network.finalAfter;
  if (final < 0) return;
  let done = await readPayoutProgress(ledger, place);
  if (done === undefined) return beginPayouts(ledger, { ...place, block: final });
  if (done >= final) return;
  const known = await receiversOf(channels, memory);
  const receivers = [...known.values()].map(({ receiver }) => wordOf(receiver));
  if (receivers.length === 0) {
    // A settle that matters comes after a claim of ours.
    await postPayouts(ledger, { ...place, after: done, to: final, payouts: [] });
    return;
  }
  for (let request = 0; request < maxRequests && done < final; request += 1) {
    const to = Math.min(done + blocksAtOnce, final);
    const payouts = await readPayouts(channels, { from: done + 1, to, receivers });
    if (!(await postPayouts(ledger, { ...place, after: done, to, payouts }))) return;
    done = to;
  }
}

async function readPayouts(
  { settlement: { network }, place: { contract } }: ChannelsContext,
  { from, to, receivers }: { from: number; to: number; receivers: readonly Hex[] },
): Promise<Payout[]> {
  const answers = await readEvents(network.rpc, {
    contract,
    from: BigInt(from),
    to: BigInt(to),
    topics: [settledTopic, [...new Set(receivers)]],
  });
  const found = new Map<string, z.output<typeof settledSchema>[number]>();
  for (const log of answers.flatMap((answer) => settledSchema.parse(answer))) {
    // A node may return more than was asked for, or an event twice.
    const isAsked =
      toLowerHex(log.address) === contract && log.blockNumber >= from && log.blockNumber <= to;
    if (isAsked) found.set(`${toLowerHex(log.transactionHash)}/${log.logIndex}`, log);
  }
  return [...found.values()].map(({ topics: [, receiver, token], data, ...log }) => ({
    receiver: addressOf(receiver),
    token: addressOf(token),
    amount: BigInt(data),
    transaction: toLowerHex(log.transactionHash),
    logIndex: log.logIndex,
    block: { number: log.blockNumber, hash: toLowerHex(log.blockHash) },
  }));
}

function wordOf(address: Hex): Hex {
  return `0x${address.slice(2).padStart(64, "0")}`;
}

function addressOf(word: Hex): Hex {
  return `0x${toLowerHex(word).slice(26)}`;
}
