import {
  type BlockHeader,
  blockByNumber,
  parseBlockHeader,
  type RpcEndpointHandle,
  RpcError,
} from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { BaseError } from "viem";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { EscrowContext } from "../channels-context.ts";
import { readBlock } from "./mirror-channels.ts";
import { type BlockId, channelsAtOnce, isStateMissing, readChannels } from "./read-channels.ts";

/** A channel as one endpoint has it. `endpoint`: its number, counted from 1. */
export type ChannelVote = ChannelReading & { endpoint: number };

/** Readings of each endpoint that has a vote, by channel. */
export type ChannelVotes = Map<Hex, ChannelVote[]>;

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
 * An endpoint that keeps too few states for that depth votes by its head: else one that lies, and
 * has them, would decide alone. It has no vote on channels that it does not return in time. One
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
  const { clock } = escrow.context;
  const { rpc } = escrow.settlement.network;
  const all = await withinTime(clock, (signal) =>
    Promise.all(rpc.endpoints.map((endpoint) => readOwn(escrow, { endpoint, ids, depth, signal }))),
  );
  for (const { endpoint, readings } of votersOf(escrow, all)) {
    for (const [id, reading] of readings) {
      votes.get(id)?.push({ ...reading, endpoint: endpoint.endpoint });
    }
  }
  return votes;
}

interface Head {
  number: number;
  /** Unix seconds. */
  time: number;
}

/** An endpoint that has a say. */
interface Voter {
  endpoint: RpcEndpointHandle;
  head: Head;
}

/** Aborts readings after their time. */
function withinTime<T>(
  clock: EscrowContext["context"]["clock"],
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const cancel = clock.setTimer(() => stop.abort(), maxReadMs);
  return read(stop.signal).finally(cancel);
}

/** Those that answer, and are not stuck while another one is not. */
function votersOf<Each extends Pick<Voter, "endpoint"> & { head: Head | undefined }>(
  { context: { clock, ledger, logger }, settlement }: EscrowContext,
  all: readonly Each[],
): (Each & Voter)[] {
  const now = ledger.now();
  const isOld = (head: Head) => now - head.time * 1_000 > maxHeadAgeMs;
  const hasNew = all.some(({ head }) => head !== undefined && !isOld(head));
  return all.flatMap((each) => {
    const { endpoint, head } = each;
    if (head === undefined) return [];
    if (!hasNew || !isOld(head)) return [{ ...each, head }];
    if (clock.now() - (warnedAt.get(endpoint) ?? Number.NEGATIVE_INFINITY) >= warnEveryMs) {
      warnedAt.set(endpoint, clock.now());
      const { network } = settlement.network;
      logger.warn(
        { network, endpoint: endpoint.endpoint, block: head.number, time: head.time },
        "an endpoint is stuck at an old block; it has no say about channels",
      );
    }
    return [];
  });
}

function readHeader(endpoint: Pick<RpcEndpointHandle, "request">, signal: AbortSignal) {
  return orNothing(signal, async () =>
    parseBlockHeader(await endpoint.request(blockByNumber("latest"), { signal })),
  );
}

function headOf({ number, timestamp }: BlockHeader): Head {
  return { number: Number(number), time: Number(timestamp) };
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
  const header = await readHeader(endpoint, signal);
  if (header === undefined) return { endpoint, head: undefined, readings };
  const head = headOf(header);
  const newest = { number: head.number, hash: header.hash };
  const block =
    depth === 0
      ? newest
      : await orNothing(signal, () => readBlock(rpc, Math.max(0, head.number - depth)));
  for (let from = 0; from < ids.length && !signal.aborted; from += channelsAtOnce) {
    const part = ids.slice(from, from + channelsAtOnce);
    const readAt = (at: BlockId) =>
      orNothing(signal, () =>
        readChannels({ rpc, multicall3 }, { contract, ids: part, block: at }),
      );
    const read = (block && (await readAt(block))) ?? (await readAt(newest));
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
