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

/** A `Refunded` event of a channel. */
export interface RefundedEvent {
  /** In the token's smallest unit. */
  amount: bigint;
  /** Of its transaction. */
  hash: Hex;
  blockNumber: number;
}

/**
 * The `Refunded` events of a channel in some blocks, by any sender, in their order.
 *
 * @throws RpcError, ZodError where a block's events cannot be read
 */
export async function readRefunded(
  rpc: RpcRequester,
  options: { contract: Address; channelId: Hex; from: number; to: number },
): Promise<RefundedEvent[]> {
  const { contract, channelId } = options;
  const end = BigInt(options.to);
  const events: RefundedEvent[] = [];
  for (let from = BigInt(options.from); from <= end; from += blocksAtOnce) {
    const last = from + blocksAtOnce - 1n;
    const to = last < end ? last : end;
    const topics = [refundedTopic, [channelId]];
    for (const answer of await readEvents(rpc, { contract, from, to, topics })) {
      for (const log of refundedSchema.parse(answer)) {
        const isOurs = toLowerHex(log.address) === contract;
        // A node may return more than was asked for.
        if (!isOurs || toLowerHex(log.topics[1]) !== channelId) continue;
        const { transactionHash, blockNumber } = log;
        events.push({ amount: BigInt(log.data), hash: toLowerHex(transactionHash), blockNumber });
      }
    }
  }
  return events;
}

/** The sum of events, with the transaction of the last one; `undefined` without any. */
export function sumOf(
  events: readonly RefundedEvent[],
): { hash: Hex; refunded: bigint } | undefined {
  const last = events.at(-1);
  if (last === undefined) return undefined;
  return { hash: last.hash, refunded: events.reduce((sum, { amount }) => sum + amount, 0n) };
}
