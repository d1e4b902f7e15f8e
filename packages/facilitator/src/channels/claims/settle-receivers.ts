import { RpcError, type RpcRequester } from "@coinslot/chain";
import { channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import * as z from "zod";
import {
  findLastSettle,
  insertSettle,
  type SettledReceiver,
} from "../../ledger/channels/channel-settles.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import { tryAtEach } from "../../settle/evidence/try-at-each.ts";
import { gasLimitOf } from "../../settle/relay/gas.ts";
import { backOff, type Rests } from "../back-off.ts";
import { worthFactor } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readBlock } from "../watch/read-block.ts";
import { isStateMissing, readable } from "../watch/read-channels.ts";
import { type KnownReceivers, type Receiver, receiversOf } from "./receivers-of.ts";

const abi = channelSettlementAbi;
const dayMs = 86_400_000;
/** Longest time between two trials of a settle that its token refuses. */
const maxRefusedMs = 3_600_000;
/** A settle follows another one of its receiver after this: the first must be final before. */
const pauseMs = 600_000;
/** 68,000 measured of a plain token; one behind a proxy takes more. */
export const settleGas = 150_000n;
const hexSchema = z.templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2})*$/)]);

/** Memory of one process about settles, by their receivers. Times are by the clock. */
export interface SettleMemory extends KnownReceivers {
  /** Settles that their token has refused, until the next trial. */
  settleRests: Rests<string>;
  /** When such a refusal was reported last. */
  settleReportedAt: Map<string, number>;
}

/**
 * Sends claimed money to its receivers: once the claims are final, when the sum is worth it, else
 * daily, and the first time at once. A settle of another sender leaves nothing to do. A node that
 * fails for one receiver holds up no other.
 *
 * @param signal ends the look before the next receiver
 * @throws DatabaseError; what was stored stays
 */
export async function settleReceivers(
  channels: ChannelsContext,
  memory: SettleMemory,
  signal: AbortSignal,
): Promise<void> {
  const { context, place } = channels;
  const receivers = await receiversOf(channels, memory);
  for (const { receiver, token } of receivers.values()) {
    if (signal.aborted) return;
    try {
      await settleOwed(channels, memory, { ...place, receiver, token });
    } catch (err) {
      if (!(err instanceof RpcError || err instanceof z.ZodError)) throw err;
      const found = { err, network: place.network, receiver, token };
      context.logger.warn(found, "claimed money could not be sent to its receiver; retrying");
    }
  }
}

async function settleOwed(
  channels: ChannelsContext,
  memory: SettleMemory,
  receiver: SettledReceiver,
): Promise<void> {
  const { ledger, clock } = channels.context;
  if ((memory.settleRests.get(keyOf(receiver))?.until ?? 0) > clock.now()) return;
  const last = await findLastSettle(ledger, receiver);
  const now = ledger.now();
  // A later date is that of a clock which was set back since.
  const pastMs = Math.abs(now - (last?.createdAt ?? now));
  if (last !== undefined && (last.isOpen || pastMs < pauseMs)) return;
  const owed = await readOwed(channels, receiver);
  if (owed === 0n) return;
  const isWorth = owed >= channels.settings.claimCost * worthFactor;
  const isDaily = last === undefined || pastMs >= dayMs;
  if (isWorth || isDaily) await settle(channels, memory, { ...receiver, amount: owed });
}

/**
 * Claimed and not settled, at `finalAfter`. A node may keep too few states for that: then at the
 * head. A settle sends what is claimed in its own block, so a claim that is gone costs its gas.
 */
async function readOwed(
  { settlement: { network } }: ChannelsContext,
  receiver: SettledReceiver,
): Promise<bigint> {
  const head = await network.watcher.read(network.pollMs);
  const block = await readBlock(network.rpc, Math.max(0, Number(head.number) - network.finalAfter));
  if (block === undefined) return 0n;
  try {
    return await readOwedAt(network.rpc, receiver, { blockHash: block.hash });
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    return readOwedAt(network.rpc, receiver, "latest");
  }
}

async function readOwedAt(
  rpc: RpcRequester,
  { contract, receiver, token }: SettledReceiver,
  at: { blockHash: Hex } | "latest",
): Promise<bigint> {
  const args = [receiver, token] as const;
  const data = encodeFunctionData({ abi, functionName: "receivers", args });
  const answer = await rpc.request({ method: "eth_call", params: [{ to: contract, data }, at] });
  const words = hexSchema.parse(answer);
  const [claimed, settled] = readable(() =>
    decodeFunctionResult({ abi, functionName: "receivers", data: words }),
  );
  return claimed > settled ? claimed - settled : 0n;
}

async function settle(
  channels: ChannelsContext,
  memory: SettleMemory,
  owed: SettledReceiver & { amount: bigint },
): Promise<void> {
  const { context, settlement, place } = channels;
  const { ledger, logger } = context;
  const { network } = place;
  const { contract: to, receiver, token } = owed;
  const data: Hex = encodeFunctionData({ abi, functionName: "settle", args: [receiver, token] });
  const call = { method: "eth_call", params: [{ to, data }, "latest"] };
  const subjects = ["settles", `settle ${keyOf(owed)}`];
  const tried = await tryAtEach(settlement, call, subjects);
  if (tried === "awaited") {
    return logger.debug({ network, receiver, token }, "a settle waits for an endpoint's trial");
  }
  if (tried !== "passes") return noteRefused(channels, memory, { owed, error: tried });
  memory.settleRests.delete(keyOf(owed));
  memory.settleReportedAt.delete(keyOf(owed));
  const outcome = await callByRelayer(settlement, {
    to,
    data,
    gasLimit: gasLimitOf(data, settleGas),
    isUrgent: false,
    alongside: (transaction, transactionId) =>
      insertSettle(ledger, transaction, { ...owed, transactionId }),
  });
  if (outcome !== "stored") logger.debug({ network, because: outcome }, "a settle waits");
}

/**
 * A token may refuse a transfer for ever. So it is tried less often, and reported once a day. One
 * node's revert is no refusal: it would hold up the payout for an hour, also once it has gone.
 */
function noteRefused(
  { context: { clock, logger }, place: { network } }: ChannelsContext,
  { settleRests, settleReportedAt }: SettleMemory,
  { owed, error: err }: { owed: Receiver; error: Error },
): void {
  const { receiver, token } = owed;
  const key = keyOf(owed);
  const now = clock.now();
  backOff(settleRests, key, { now, maxMs: maxRefusedMs });
  if (now - (settleReportedAt.get(key) ?? Number.NEGATIVE_INFINITY) < dayMs) return;
  settleReportedAt.set(key, now);
  logger.error(
    { err, network, receiver, token },
    "claimed money cannot be sent to its receiver: the token refuses the transfer",
  );
}

function keyOf({ receiver, token }: Receiver): string {
  return `${receiver}/${token}`;
}
