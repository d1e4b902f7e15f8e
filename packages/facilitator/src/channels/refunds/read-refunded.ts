import { type RpcRequester, RpcResponseError } from "@coinslot/chain";
import {
  type Address,
  addressSchema,
  bytes32Schema,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { numberToHex, toEventSelector } from "viem";
import * as z from "zod";
import { ChannelReadError } from "../watch/read-channels.ts";

const refundedTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Refunded" ? [toEventSelector(item)] : [],
);

/** Blocks in one request, at most. */
export const maxBlocksAtOnce = 1_000;

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

/** What was read of a channel's events, from the newest block down. */
export interface RefundedSoFar {
  /** The newest block that is left. */
  next: number;
  /** Blocks in the next request. A node may return few at once. */
  atOnce: number;
  /** Those above `next`, the newest first. */
  events: RefundedEvent[];
}

/**
 * Reads the `Refunded` events of a channel by any sender, down to the block `first`. It stops once
 * they are enough. What is read before a fault is in `soFar`: a node that has pruned its oldest
 * logs has shown the others then.
 *
 * @throws RpcError, ZodError where a block's events cannot be read
 */
export async function readRefunded(
  rpc: RpcRequester,
  {
    contract: address,
    channelId,
    first,
    isEnough,
  }: {
    contract: Address;
    channelId: Hex;
    first: number;
    isEnough: (events: readonly RefundedEvent[]) => boolean;
  },
  soFar: RefundedSoFar,
): Promise<void> {
  const topics = [refundedTopic, [channelId]];
  let answers = 0;
  while (soFar.next >= first && !isEnough(soFar.events)) {
    const to = soFar.next;
    const from = Math.max(first, to - soFar.atOnce + 1);
    const filter = { address, topics, fromBlock: numberToHex(from), toBlock: numberToHex(to) };
    let answer: unknown;
    try {
      const call = { method: "eth_getLogs", params: [filter] };
      answer = await rpc.request(call, { minBlock: BigInt(to) });
    } catch (error) {
      const isRefused = error instanceof RpcResponseError;
      // A look that is cut off in time has no fault to learn from.
      if (isRefused || answers === 0) soFar.atOnce = Math.max(1, Math.floor((to - from + 1) / 2));
      if (!isRefused || from === to) throw error;
      continue;
    }
    answers += 1;
    // A moment's fault may have made it small.
    if (answers % 8 === 0) soFar.atOnce = Math.min(maxBlocksAtOnce, soFar.atOnce * 2);
    const found = eventsOf(refundedSchema.parse(answer), { address, channelId, from, to });
    if (soFar.events.length + found.length > maxEvents) {
      throw new ChannelReadError("A node makes up events");
    }
    soFar.events.push(...found);
    soFar.next = from - 1;
  }
}

/** Those that were asked for: a node may return more. The newest first. */
function eventsOf(
  logs: z.infer<typeof refundedSchema>,
  asked: { address: Address; channelId: Hex; from: number; to: number },
): RefundedEvent[] {
  const events = logs.flatMap(({ address, topics, data, transactionHash, blockNumber }) => {
    const isAsked = blockNumber >= asked.from && blockNumber <= asked.to;
    const isOurs =
      toLowerHex(address) === asked.address && toLowerHex(topics[1]) === asked.channelId;
    const [amount, hash] = [BigInt(data), toLowerHex(transactionHash)];
    // The escrow has no event without an amount.
    return isAsked && isOurs && amount > 0n ? [{ amount, hash, blockNumber }] : [];
  });
  return events.reverse();
}

/** The sum of events, with the transaction of the newest; `undefined` without any. */
export function sumOf(
  events: readonly RefundedEvent[],
): { hash: Hex; refunded: bigint } | undefined {
  const [newest] = events;
  if (newest === undefined) return undefined;
  return { hash: newest.hash, refunded: events.reduce((sum, { amount }) => sum + amount, 0n) };
}
