import type { RpcEndpointHandle, RpcRequester } from "@coinslot/chain";
import { type BlockHeader, blockByNumber, blockHeaderSchema } from "@coinslot/chain";
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
  rewindPayouts,
} from "../../ledger/channels/channel-payouts.ts";
import { isStuck } from "../../settle/evidence/is-stuck.ts";
import { isAwaited, noteAnswer } from "../../settle/evidence/silences.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readEvents } from "../watch/read-events.ts";
import { type KnownReceivers, receiversOf } from "./receivers-of.ts";

const settledTopic = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
);

/** Blocks of one request. */
const blocksAtOnce = 1_000;
/** Requests of one look to each endpoint, at most: the next look goes on. */
const maxRequests = 50;
const maxBlocks = blocksAtOnce * maxRequests;
const warnEveryMs = 600_000;

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

/** Memory of one process about payouts. */
interface PayoutMemory extends KnownReceivers {
  /** When heads far apart were reported last, by the clock. */
  payoutsWarnedAt: number;
}

/**
 * Begins the payouts of a ledger at the final block, before its first claim: what it claims is
 * newer. No other endpoint is asked: a block that is too high is found and set back.
 *
 * @throws RpcError, DatabaseError
 */
export async function startPayouts({
  context: { ledger },
  settlement: { network },
  place,
}: ChannelsContext): Promise<void> {
  if ((await readPayoutProgress(ledger, place)) !== undefined) return;
  const { number } = await network.watcher.read(network.pollMs);
  await beginPayouts(ledger, { ...place, block: Math.max(0, Number(number) - network.finalAfter) });
}

/**
 * Posts the money that the escrow has sent to receivers of claimed channels, once its block is
 * final. Anyone may have asked for it. It goes on where an earlier look ended, so none is left out
 * after a pause.
 *
 * No row is taken back, and no block is read again. So each endpoint that has a say has to return
 * the same payouts, and to have the blocks. One that does not answer is awaited as in other votes.
 *
 * @param isStopped ends the look before its next request
 * @throws DatabaseError, and what is no fault of a node; what was posted stays
 */
export async function followPayouts(
  channels: ChannelsContext,
  memory: PayoutMemory,
  isStopped: () => boolean,
): Promise<void> {
  const { context, settlement, place } = channels;
  const { ledger, logger } = context;
  const { finalAfter } = settlement.network;
  let done = await readPayoutProgress(ledger, place);
  const voters = await findVoters(channels);
  if (voters.length === 0 || done === undefined) return;
  const heads = voters.map(({ head }) => Number(head.number));
  const final = Math.min(...heads) - finalAfter;
  if (final < 0) return;
  const lowest = Math.max(0, final - maxBlocks);
  if (done > Math.max(...heads)) {
    logger.error(
      { network: place.network, block: done, heads, final },
      "payouts were read above all heads: a node's was too high; they are read anew",
    );
    done = await rewindPayouts(ledger, { ...place, done, posted: { upTo: final }, lowest });
  } else if (done > Math.min(...heads) && done - final <= maxBlocks) {
    // Progress begins by one node's head, which may stay too high. Or another is too low for a
    // while: then what all have returned stays, and few blocks are read twice.
    const posted = { since: lowest, upTo: done };
    done = await rewindPayouts(ledger, { ...place, done, posted, lowest });
  }
  if (done >= final) {
    const isApart = Math.max(...heads) - Math.min(...heads) > finalAfter;
    if (isApart) warnApart(channels, memory, { heads, done });
    return;
  }
  const known = await receiversOf(channels, memory);
  const receivers = [...known.values()].map(({ receiver }) => wordOf(receiver));
  if (receivers.length === 0) {
    // A settle that matters comes after a claim of ours.
    await postPayouts(ledger, { ...place, after: done, to: final, payouts: [] });
    return;
  }
  for (let request = 0; request < maxRequests && done < final && !isStopped(); request += 1) {
    const to = Math.min(done + blocksAtOnce, final);
    const payouts = await readAgreed(channels, voters, { from: done + 1, to, receivers });
    if (payouts === undefined) return;
    if (!(await postPayouts(ledger, { ...place, after: done, to, payouts }))) return;
    done = to;
  }
}

/** A false head of an endpoint holds up each payout, and may do so for ever. */
function warnApart(
  { context: { clock, logger }, place: { network } }: ChannelsContext,
  memory: PayoutMemory,
  found: { heads: readonly number[]; done: number },
): void {
  if (clock.now() - memory.payoutsWarnedAt < warnEveryMs) return;
  memory.payoutsWarnedAt = clock.now();
  logger.warn(
    { network, ...found },
    "payouts wait while heads are far apart: an endpoint's is too low, or another's too high",
  );
}

interface Voter {
  endpoint: RpcEndpointHandle;
  head: BlockHeader;
}

/** Endpoints that have a say; none while one is awaited. */
async function findVoters({ context, settlement: { network } }: ChannelsContext): Promise<Voter[]> {
  const answers = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      const subjects = ["head"];
      try {
        const head = blockHeaderSchema.parse(await endpoint.request(blockByNumber("latest")));
        noteAnswer(endpoint, subjects);
        return { endpoint, head };
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return isAwaited(context, silent) ? "awaited" : "left out";
      }
    }),
  );
  if (answers.includes("awaited")) return [];
  const voters = answers.filter((answer) => typeof answer === "object");
  const heads = voters.map(({ head }) => head);
  return voters.filter(({ head }) => !isStuck(head, heads, context.ledger.now()));
}

interface Range {
  from: number;
  to: number;
  receivers: readonly Hex[];
}

/** The payouts of some blocks; `undefined` where endpoints differ about them, or one is awaited. */
async function readAgreed(
  { context, settlement: { network }, place }: ChannelsContext,
  voters: readonly Voter[],
  range: Range,
): Promise<Payout[] | undefined> {
  const answers = await Promise.all(
    voters.map(async ({ endpoint }) => {
      const subjects = ["payouts"];
      try {
        const payouts = await readPayouts(endpoint, { ...range, contract: place.contract });
        noteAnswer(endpoint, subjects);
        return payouts;
      } catch (error) {
        const silent = { network, endpoint, subjects, error };
        return isAwaited(context, silent) ? "awaited" : "left out";
      }
    }),
  );
  if (answers.includes("awaited")) return undefined;
  const [first, ...others] = answers.filter((answer) => typeof answer === "object");
  if (first === undefined || others.every((other) => textOf(other) === textOf(first))) return first;
  const { from, to } = range;
  context.logger.warn(
    { network: place.network, from, to },
    "endpoints differ about payouts; they are not posted, and read again",
  );
  return undefined;
}

function textOf(payouts: readonly Payout[]): string {
  const texts = payouts.map(({ receiver, token, amount, transaction, logIndex, block }) =>
    [receiver, token, amount, transaction, logIndex, block.number, block.hash].join(),
  );
  return texts.sort().join("\n");
}

async function readPayouts(
  rpc: RpcRequester,
  { contract, from, to, receivers }: Range & { contract: Hex },
): Promise<Payout[]> {
  const answers = await readEvents(rpc, {
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
