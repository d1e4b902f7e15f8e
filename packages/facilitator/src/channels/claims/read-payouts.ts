import type { RpcRequester } from "@coinslot/chain";
import {
  addressSchema,
  bytes32Schema,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { toEventSelector } from "viem";
import * as z from "zod";
import type { Payout } from "../../ledger/channels/channel-payouts.ts";
import { readEvents } from "../watch/read-events.ts";

const settledTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
);

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

/** Blocks, and the accounts whose payouts are read. */
export interface PayoutRange {
  from: number;
  to: number;
  receivers: readonly Hex[];
}

/**
 * The payouts of some blocks, as one node shows them.
 *
 * @throws RpcError, ZodError where a block's events cannot be read
 */
export async function readPayouts(
  rpc: RpcRequester,
  { contract, from, to, receivers }: PayoutRange & { contract: Hex },
): Promise<Payout[]> {
  const answers = await readEvents(rpc, {
    contract,
    from: BigInt(from),
    to: BigInt(to),
    topics: [settledTopic, [...new Set(receivers.map(wordOf))]],
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
