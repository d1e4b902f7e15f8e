import { blockByNumber, parseBlockHeader, type RpcEndpointHandle, RpcError } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { BaseError } from "viem";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { EscrowContext } from "../channels-context.ts";
import { readBlock } from "./mirror-channels.ts";
import { channelsAtOnce, isStateMissing, readChannels } from "./read-channels.ts";

/** Readings of each endpoint that has a vote, by channel. */
export type ChannelVotes = Map<Hex, ChannelReading[]>;

/** Time for all readings of one endpoint. */
const maxReadMs = 15_000;
/** An endpoint with an older head has no vote, where another's is newer. */
const maxHeadAgeMs = 600_000;
const warnEveryMs = 600_000;
/** When an endpoint without a vote was reported last, by the clock. */
const warnedAt = new WeakMap<RpcEndpointHandle, number>();

/**
 * Channels as each endpoint that answers has them, some blocks below its own head. A reading of the
 * pool is one node's word: a decision that cannot be taken back asks all of them.
 *
 * An endpoint has no vote on channels that it does not return in time, or lacks the state of. One
 * that is stuck at an old block has none at all: it would hold up all decisions for ever. The age
 * is by this machine's clock, since a node that lies may name any height.
 *
 * @throws what is no fault of a node
 */
export async function readByEach(
  escrow: EscrowContext,
  { ids, depth = 0 }: { ids: readonly Hex[]; depth?: number },
): Promise<ChannelVotes> {
  const votes: ChannelVotes = new Map(ids.map((id) => [id, []]));
  if (ids.length === 0) return votes;
  const { context, settlement } = escrow;
  const { clock, ledger, logger } = context;
  const { rpc, network } = settlement.network;
  const stop = new AbortController();
  const cancel = clock.setTimer(() => stop.abort(), maxReadMs);
  const { signal } = stop;
  const all = await Promise.all(
    rpc.endpoints.map((endpoint) => readOwn(escrow, { endpoint, ids, depth, signal })),
  ).finally(cancel);
  const now = ledger.now();
  const isOld = (head: Head) => now - head.time * 1_000 > maxHeadAgeMs;
  const hasNew = all.some(({ head }) => head !== undefined && !isOld(head));
  for (const { endpoint, head, readings } of all) {
    if (head === undefined) continue;
    if (!hasNew || !isOld(head)) {
      for (const [id, reading] of readings) votes.get(id)?.push(reading);
    } else if (clock.now() - (warnedAt.get(endpoint) ?? Number.NEGATIVE_INFINITY) >= warnEveryMs) {
      warnedAt.set(endpoint, clock.now());
      logger.warn(
        { network, endpoint: endpoint.endpoint, block: head.number, time: head.time },
        "an endpoint is stuck at an old block; it has no say about channels",
      );
    }
  }
  return votes;
}

interface Head {
  number: number;
  /** Unix seconds. */
  time: number;
}

/** Channels of one endpoint, by parts: one that fails takes no vote on the others. */
async function readOwn(
  { settlement, place: { contract } }: EscrowContext,
  {
    endpoint,
    ids,
    depth,
    signal,
  }: { endpoint: RpcEndpointHandle; ids: readonly Hex[]; depth: number; signal: AbortSignal },
) {
  const rpc: Pick<RpcEndpointHandle, "chainId" | "request" | "requestMany"> = {
    chainId: endpoint.chainId,
    request: (call, options) => endpoint.request(call, { ...options, signal }),
    requestMany: (calls, options) => endpoint.requestMany(calls, { ...options, signal }),
  };
  const { multicall3 } = settlement.network;
  const readings = new Map<Hex, ChannelReading>();
  const header = await orNothing(signal, async () =>
    parseBlockHeader(await rpc.request(blockByNumber("latest"))),
  );
  if (header === undefined) return { endpoint, head: undefined, readings };
  const head = { number: Number(header.number), time: Number(header.timestamp) };
  const block =
    depth === 0
      ? { number: head.number, hash: header.hash }
      : await orNothing(signal, () => readBlock(rpc, Math.max(0, head.number - depth)));
  for (let from = 0; block && from < ids.length && !signal.aborted; from += channelsAtOnce) {
    const part = ids.slice(from, from + channelsAtOnce);
    const read = await orNothing(signal, () =>
      readChannels({ rpc, multicall3 }, { contract, ids: part, block }),
    );
    for (const [id, reading] of read ?? []) readings.set(id, reading);
  }
  return { endpoint, head, readings };
}

/** `undefined` by a node's fault, and after the abort. */
async function orNothing<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const isNodeFault =
      error instanceof RpcError || error instanceof z.ZodError || isStateMissing(error);
    if (isNodeFault || error instanceof BaseError || signal.aborted) return undefined;
    throw error;
  }
}
