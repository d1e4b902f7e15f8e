import {
  type BlockHeader,
  blockByNumber,
  blockHeaderSchema,
  type RpcEndpointHandle,
  RpcError,
} from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { SettlementContext, SettlementNetwork } from "../../settle/context.ts";
import { isStuck } from "../../settle/evidence/is-stuck.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import type { EscrowContext } from "../channels-context.ts";
import { readBlock } from "./read-block.ts";
import { type BlockId, ChannelReadError, channelsAtOnce, readChannels } from "./read-channels.ts";

/** A channel as one endpoint has it. */
export interface ChannelVote extends ChannelReading {
  /** Its number, counted from 1. */
  endpoint: number;
  /** False: it keeps too few states for the depth that was asked for, and votes by its head. */
  isAtDepth: boolean;
}

/** A channel as the endpoints have it. */
export interface ChannelVotes {
  /** Of each endpoint that has a say, and answers. */
  readings: ChannelVote[];
  /** Endpoints that have a say, and have not answered. */
  awaited: number;
  /** An endpoint has returned others, and was not asked for this one: its time was over. */
  isUnreached: boolean;
}

/** Parts of a running network that a vote needs. */
export interface Polled {
  context: Pick<SettlementContext, "clock" | "logger"> & { ledger: Pick<LedgerContext, "now"> };
  settlement: {
    network: Pick<SettlementNetwork, "network" | "multicall3"> & {
      rpc: Pick<SettlementNetwork["rpc"], "endpoints">;
    };
  };
  place: Pick<EscrowContext["place"], "contract">;
}

/** Time for all readings of one endpoint. */
const maxReadMs = 15_000;
const warnEveryMs = 600_000;
/** When an endpoint without a vote was reported last, by the clock. */
const warnedAt = new WeakMap<RpcEndpointHandle, number>();

/**
 * Whether all endpoints that have a say agree, and none is awaited. Then a decision that cannot be
 * taken back is no single node's word. With one endpoint, its word decides.
 */
export function isUnanimous(
  votes: ChannelVotes | undefined,
  agrees: (reading: ChannelVote) => boolean,
): boolean {
  if (votes === undefined || votes.awaited > 0 || votes.readings.length === 0) return false;
  return votes.readings.every(agrees);
}

/**
 * Channels as each endpoint has them, some blocks below its own head. A reading of the pool is one
 * node's word: a decision that cannot be taken back asks all of them.
 *
 * One that does not return a channel, or not in time, is awaited, as `isAwaited` says. One that
 * keeps too few states for that depth votes by its head: else one that lies, and has them, would
 * decide alone. One that is stuck at an old block has no vote, and is not awaited.
 *
 * @throws what is no fault of a node
 */
export async function readByEach(
  polled: Polled,
  { ids, depth = 0 }: { ids: readonly Hex[]; depth?: number },
): Promise<Map<Hex, ChannelVotes>> {
  const votes = new Map<Hex, ChannelVotes>(
    ids.map((id) => [id, { readings: [], awaited: 0, isUnreached: false }]),
  );
  if (ids.length === 0) return votes;
  const { clock } = polled.context;
  const { rpc } = polled.settlement.network;
  const all = await withinTime(clock, (signal) =>
    Promise.all(rpc.endpoints.map((endpoint) => readOwn(polled, { endpoint, ids, depth, signal }))),
  );
  for (const { endpoint, head, readings, awaited, unreached } of votersOf(polled, all)) {
    const highest = Number(head?.number) - depth;
    for (const [id, reading] of readings) {
      const isAtDepth = reading.block.number <= highest;
      votes.get(id)?.readings.push({ ...reading, endpoint: endpoint.endpoint, isAtDepth });
    }
    for (const id of awaited) {
      const ofChannel = votes.get(id);
      if (ofChannel) ofChannel.awaited += 1;
    }
    for (const id of readings.size === 0 ? [] : unreached) {
      const ofChannel = votes.get(id);
      if (ofChannel) ofChannel.isUnreached = true;
    }
  }
  return votes;
}

/** Aborts readings after their time, and when one of `stopping` does. */
export async function withinTime<T>(
  clock: Polled["context"]["clock"],
  read: (signal: AbortSignal) => Promise<T>,
  stopping: readonly AbortSignal[] = [],
): Promise<T> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  const cancel = clock.setTimer(abort, maxReadMs);
  // One that lives as long as the process would keep what `AbortSignal.any` makes.
  for (const signal of stopping) signal.addEventListener("abort", abort);
  if (stopping.some(({ aborted }) => aborted)) abort();
  try {
    return await read(stop.signal);
  } finally {
    cancel();
    for (const signal of stopping) signal.removeEventListener("abort", abort);
  }
}

/** Channels of one endpoint. */
interface Ballot {
  endpoint: RpcEndpointHandle;
  head: BlockHeader | undefined;
  readings: ReadonlyMap<Hex, ChannelReading>;
  /** Channels that it may still return. */
  awaited: readonly Hex[];
  /** Those of them that it was not asked for. */
  unreached: readonly Hex[];
}

/** Those that are not stuck while another one is not. */
function votersOf(
  { context: { clock, ledger, logger }, settlement }: Polled,
  all: readonly Ballot[],
): Ballot[] {
  const now = ledger.now();
  const heads = all.flatMap(({ head }) => head ?? []);
  return all.filter(({ endpoint, head }) => {
    if (head === undefined || !isStuck(head, heads, now)) return true;
    if (clock.now() - (warnedAt.get(endpoint) ?? Number.NEGATIVE_INFINITY) >= warnEveryMs) {
      warnedAt.set(endpoint, clock.now());
      const { network } = settlement.network;
      const [block, time] = [Number(head.number), Number(head.timestamp)];
      logger.warn(
        { network, endpoint: endpoint.endpoint, block, time },
        "an endpoint is stuck at an old block; it has no say about channels",
      );
    }
    return false;
  });
}

type Fault = RpcError | z.ZodError;
type Read<T> = { value: T; fault?: undefined } | { value?: undefined; fault: Fault };

/** Channels of one endpoint, by parts: one that fails takes no vote on the others. */
async function readOwn(
  { context, settlement, place: { contract } }: Polled,
  {
    endpoint,
    ids,
    depth,
    signal,
  }: { endpoint: RpcEndpointHandle; ids: readonly Hex[]; depth: number; signal: AbortSignal },
): Promise<Ballot> {
  const { network } = settlement;
  const { multicall3 } = network;
  const rpc: Pick<RpcEndpointHandle, "chainId" | "request" | "requestMany"> = {
    chainId: endpoint.chainId,
    request: (call, options) => endpoint.request(call, { ...options, signal }),
    requestMany: (calls, options) => endpoint.requestMany(calls, { ...options, signal }),
  };
  const mayAnswer = (subject: string, error: Fault) =>
    isAwaited(context, { network, endpoint, subjects: [subject], error });
  const header = await attempt(signal, async () =>
    blockHeaderSchema.parse(await rpc.request(blockByNumber("latest"))),
  );
  if (header.fault !== undefined) {
    const awaited = mayAnswer("head", header.fault) ? ids : [];
    return { endpoint, head: undefined, readings: new Map(), awaited, unreached: [] };
  }
  noteAnswer(endpoint, ["head"]);
  const head = header.value;
  const newest = { number: Number(head.number), hash: head.hash };
  const height = Math.max(0, newest.number - depth);
  const block = depth === 0 ? newest : (await attempt(signal, () => readBlock(rpc, height))).value;
  const readings = new Map<Hex, ChannelReading>();
  const failed = new Map<Hex, Fault>();
  let next = 0;
  // The first part counts as not answered where the header has taken all the time.
  for (; next < ids.length && (next === 0 || !signal.aborted); next += channelsAtOnce) {
    const part = ids.slice(next, next + channelsAtOnce);
    const readAt = (at: BlockId) =>
      attempt(signal, () => readChannels({ rpc, multicall3 }, { contract, ids: part, block: at }));
    const atDepth = block && (await readAt(block));
    const isNewestNext = atDepth === undefined || (depth > 0 && atDepth.value === undefined);
    const read = isNewestNext ? await readAt(newest) : atDepth;
    // Cut off, as if it was not asked.
    if (signal.aborted && read.fault !== undefined && next > 0) break;
    for (const [id, reading] of read.value ?? []) readings.set(id, reading);
    if (read.fault !== undefined) for (const id of part) failed.set(id, read.fault);
  }
  noteAnswer(endpoint, [...readings.keys()].map(subjectOf));
  if (readings.size > 0) noteAnswer(endpoint, ["channels"]);
  const [fault] = failed.values();
  if (readings.size === 0 && fault !== undefined && !mayAnswer("channels", fault)) {
    return { endpoint, head, readings, awaited: [], unreached: [] };
  }
  const silent = [...failed].filter(([id, error], index) => {
    // More silences would displace those of other decisions. The others are awaited without one.
    if (index >= channelsAtOnce) return true;
    const subjects = [subjectOf(id)];
    // Too many to be reported one by one.
    return isAwaited({ clock: context.clock }, { network, endpoint, subjects, error });
  });
  const unreached = ids.slice(next);
  const awaited = [...silent.map(([id]) => id), ...unreached];
  return { endpoint, head, readings, awaited, unreached };
}

function subjectOf(channelId: Hex): string {
  return `channel ${channelId}`;
}

/** @throws what is no fault of a node */
export async function attempt<T>(signal: AbortSignal, read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (error instanceof RpcError || error instanceof z.ZodError) return { fault: error };
    if (!signal.aborted) throw error;
    return { fault: new ChannelReadError("A node was too slow", { cause: error }) };
  }
}
