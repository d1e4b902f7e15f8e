import type { RpcRequester } from "@coinslot/chain";
import {
  type Address,
  addressSchema,
  bytes32Schema,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { toEventSelector } from "viem";
import * as z from "zod";
import { ChannelReadError } from "../watch/read-channels.ts";
import { readEvents } from "../watch/read-events.ts";

const refundedTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
);

/** Blocks in one request. */
const blocksAtOnce = 1_000n;

const refundedSchema = z.array(
  z.object({
    address: addressSchema,
    topics: z.tuple([bytes32Schema, bytes32Schema, bytes32Schema]),
    data: bytes32Schema,
    transactionHash: bytes32Schema,
    blockNumber: z
      .string()
      .regex(/^0x[0-9a-fA-F]{1,13}$/)
      .transform(Number),
  }),
);

/** Events of a channel while one refund of it runs. */
const maxEvents = 1_000;

/** A `Refunded` event of a channel. */
export interface RefundedEvent {
  /** In the token's smallest unit. */
  amount: bigint;
  /** Of its transaction. */
  hash: Hex;
  blockNumber: number;
}

/** Blocks of which a channel's events are read, and what was read of them. */
export interface RefundedSoFar {
  /** The first block that is left. */
  next: number;
  /** The last block of all. */
  to: number;
  /** Those below `next`. */
  events: RefundedEvent[];
}

/**
 * Reads the `Refunded` events of a channel in the blocks that are left, by any sender, in their
 * order. What is read before a fault is in `soFar`.
 *
 * @throws RpcError, ZodError where a block's events cannot be read
 */
export async function readRefunded(
  rpc: RpcRequester,
  { contract, channelId }: { contract: Address; channelId: Hex },
  soFar: RefundedSoFar,
): Promise<void> {
  const end = BigInt(soFar.to);
  const topics = [refundedTopic, [channelId]];
  for (let from = BigInt(soFar.next); from <= end; from += blocksAtOnce) {
    const last = from + blocksAtOnce - 1n;
    const range = { contract, from, to: last < end ? last : end, topics };
    await readEvents(rpc, range, (answer, to) => {
      if (soFar.events.length > maxEvents) throw new ChannelReadError("A node makes up events");
      for (const log of refundedSchema.parse(answer)) {
        const isOurs = toLowerHex(log.address) === contract;
        const { transactionHash, blockNumber } = log;
        // A node may return more than was asked for.
        const isAsked = blockNumber >= soFar.next && blockNumber <= Number(to);
        if (!isOurs || !isAsked || toLowerHex(log.topics[1]) !== channelId) continue;
        const [amount, hash] = [BigInt(log.data), toLowerHex(transactionHash)];
        // The escrow has no event without an amount.
        if (amount > 0n) soFar.events.push({ amount, hash, blockNumber });
      }
      soFar.next = Number(to) + 1;
    });
  }
}

/** The sum of events, with the transaction of the last one; `undefined` without any. */
export function sumOf(
  events: readonly RefundedEvent[],
): { hash: Hex; refunded: bigint } | undefined {
  const last = events.at(-1);
  if (last === undefined) return undefined;
  return { hash: last.hash, refunded: events.reduce((sum, { amount }) => sum + amount, 0n) };
}
