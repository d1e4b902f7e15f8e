import { isRevert, RpcError, type RpcRequester } from "@coinslot/chain";
import { channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import * as z from "zod";
import {
  findLastSettle,
  insertSettle,
  type SettledReceiver,
} from "../../ledger/channels/channel-settles.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import { gasLimitOf } from "../../settle/relay/gas.ts";
import { worthFactor } from "../channel-settings.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readBlock } from "../watch/read-block.ts";
import { isStateMissing, readable } from "../watch/read-channels.ts";
import { type KnownReceivers, receiversOf } from "./receivers-of.ts";

const abi = channelSettlementAbi;
const dayMs = 86_400_000;
/** A settle follows another one of its receiver after this: the first must be final before. */
const pauseMs = 600_000;
/** 68,000 measured of a plain token; one behind a proxy takes more. */
export const settleGas = 150_000n;
const hexSchema = z.templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2})*$/)]);

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
  memory: KnownReceivers,
  signal: AbortSignal,
): Promise<void> {
  const { context, place } = channels;
  const receivers = await receiversOf(channels, memory);
  for (const { receiver, token } of receivers.values()) {
    if (signal.aborted) return;
    try {
      await settleOwed(channels, { ...place, receiver, token });
    } catch (err) {
      if (!(err instanceof RpcError || err instanceof z.ZodError)) throw err;
      const found = { err, network: place.network, receiver, token };
      context.logger.warn(found, "claimed money could not be sent to its receiver; retrying");
    }
  }
}

async function settleOwed(channels: ChannelsContext, receiver: SettledReceiver): Promise<void> {
  const { ledger } = channels.context;
  const last = await findLastSettle(ledger, receiver);
  const now = ledger.now();
  // A later date is that of a clock which was set back since.
  const pastMs = Math.abs(now - (last?.createdAt ?? now));
  if (last !== undefined && (last.isOpen || pastMs < pauseMs)) return;
  const owed = await readOwed(channels, receiver);
  if (owed === 0n) return;
  const isWorth = owed >= channels.settings.claimCost * worthFactor;
  const isDaily = last === undefined || pastMs >= dayMs;
  if (isWorth || isDaily) await settle(channels, receiver, owed);
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
  { context: { ledger, logger }, settlement, place: { network } }: ChannelsContext,
  receiver: SettledReceiver,
  amount: bigint,
): Promise<void> {
  const { contract: to, token } = receiver;
  const args = [receiver.receiver, token] as const;
  const data: Hex = encodeFunctionData({ abi, functionName: "settle", args });
  try {
    await settlement.network.rpc.request({ method: "eth_call", params: [{ to, data }, "latest"] });
  } catch (error) {
    if (!(error instanceof Error && isRevert(error))) throw error;
    logger.error(
      { err: error, network, receiver: receiver.receiver, token },
      "claimed money cannot be sent to its receiver: the token refuses the transfer",
    );
    return;
  }
  const outcome = await callByRelayer(settlement, {
    to,
    data,
    gasLimit: gasLimitOf(data, settleGas),
    isUrgent: false,
    alongside: (transaction, transactionId) =>
      insertSettle(ledger, transaction, { ...receiver, transactionId, amount }),
  });
  if (outcome !== "stored") logger.debug({ network, because: outcome }, "a settle waits");
}
