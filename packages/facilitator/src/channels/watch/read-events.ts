import { type RpcRequester, RpcResponseError } from "@coinslot/chain";
import {
  type Address,
  bytes32Schema,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { toEventSelector } from "viem";
import * as z from "zod";

/** Events after which a channel's state is another one. */
const names = ["Deposited", "Claimed", "Refunded", "WithdrawInitiated", "WithdrawFinalized"];
const topics = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && names.includes(item.name) ? [toEventSelector(item)] : [],
);

/** Blocks in one request. */
const blocksAtOnce = 1_000n;

const logsSchema = z.array(
  z.object({ topics: z.tuple([bytes32Schema, bytes32Schema], bytes32Schema) }),
);

/** Blocks of which one contract's events are read. */
interface EventRange {
  contract: Address;
  from: bigint;
  to: bigint;
  /** As in `eth_getLogs`. */
  topics: readonly (readonly Hex[])[];
}

/**
 * Ids of the channels that changed in some blocks, other sellers' among them. A node that refuses a
 * range is asked for its halves.
 *
 * @throws RpcError, ZodError where a block's events cannot be read
 */
export async function readChangedChannels(
  rpc: RpcRequester,
  { contract, from, to }: { contract: Address; from: bigint; to: bigint },
): Promise<Set<Hex>> {
  const ids = new Set<Hex>();
  for (let first = from; first <= to; first += blocksAtOnce) {
    const last = first + blocksAtOnce - 1n;
    const range = { contract, from: first, to: last < to ? last : to, topics: [topics] };
    for (const logs of await readEvents(rpc, range)) {
      for (const { topics } of logsSchema.parse(logs)) ids.add(toLowerHex(topics[1]));
    }
  }
  return ids;
}

/**
 * Answers of nodes about events of some blocks, in their order. A node that refuses a range is
 * asked for its halves. A range without blocks has none.
 *
 * @param noteRead called with each answer at once, and with the last block of its range
 * @throws RpcError where a block's events cannot be read; also what `noteRead` throws
 */
export async function readEvents(
  rpc: RpcRequester,
  range: EventRange,
  noteRead?: (answer: unknown, to: bigint) => void,
): Promise<unknown[]> {
  const { contract: address, from, to, topics } = range;
  // It has no halves: a node that refuses it would be asked without end.
  if (from > to) return [];
  const filter = { address, topics, fromBlock: hexOf(from), toBlock: hexOf(to) };
  let answer: unknown;
  try {
    answer = await rpc.request({ method: "eth_getLogs", params: [filter] }, { minBlock: to });
  } catch (error) {
    if (!(error instanceof RpcResponseError) || from === to) throw error;
    const middle = (from + to) / 2n;
    const before = await readEvents(rpc, { ...range, to: middle }, noteRead);
    return [...before, ...(await readEvents(rpc, { ...range, from: middle + 1n }, noteRead))];
  }
  noteRead?.(answer, to);
  return [answer];
}

function hexOf(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}
