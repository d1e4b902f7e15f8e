import { sleep } from "@coinslot/chain";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeRequest } from "../bridge-request.ts";
import { isClosed } from "../chains/ask-chain.ts";
import type { EvmBridgeChain } from "../chains/bridge-chain.ts";
import type { TargetBalanceRequest } from "../chains/target-balance.ts";
import type { Bridge } from "../create-bridge.ts";
import type { BridgeQuote } from "../quote/quote-transfer.ts";
import type { RememberedTransfer } from "../send/transfer-memory.ts";
import type { TransferProgress } from "../send/transfer-progress.ts";
import type { FundsNeed } from "./funds-request.ts";
import type { TopUpContext } from "./top-up-context.ts";

/** A need on a chain that the bridge knows. */
export interface TargetNeed {
  need: FundsNeed;
  target: EvmBridgeChain;
}

/** The bounds of one request for funds. */
export interface Limits {
  payer: string;
  signal: AbortSignal | undefined;
  deadline: number;
}

/** Maximum number of quotes presented for one transfer, while prices rise. */
const maxAsked = 3;

/**
 * Brings the funds for one need, in the turn of its route. `undefined`: the bridge does not go
 * there, or the arrival could not be seen.
 *
 * Tokens that have arrived are spent, also where no two hosts confirm it: one may be away. Their
 * transfer stays stored, and no other is sent.
 */
export async function serveNeed(
  context: TopUpContext,
  targetNeed: TargetNeed,
  limits: Limits,
): Promise<boolean | undefined> {
  try {
    return await bringFunds(context, targetNeed, limits);
  } catch (error) {
    if (await isCovered(context, targetNeed, { owner: limits.payer, error })) return true;
    throw error;
  }
}

/** Returns whether tokens have arrived that no two hosts confirm, and cover the need. */
async function isCovered(
  { bridge, confirmations }: TopUpContext,
  { need, target }: TargetNeed,
  { owner, error }: { owner: string; error: unknown },
): Promise<boolean> {
  if (!(error instanceof BridgeError) || error.code !== "delivery_timeout") return false;
  const { progress } = error;
  if (progress?.state !== "received" || progress.confirmations < confirmations) return false;
  const held = { targetChain: target.key, token: need.asset, owner };
  try {
    const balance = await bridge.readTargetBalance({ ...held, notBefore: progress.targetBlock });
    return balance !== undefined && balance >= need.amount;
  } catch {
    return false;
  }
}

async function bringFunds(
  context: TopUpContext,
  { need, target }: TargetNeed,
  limits: Limits,
): Promise<boolean | undefined> {
  const { token, minAmount, clock, memory } = context;
  const { payer, signal, deadline } = limits;
  const route = { targetChain: target.key, recipient: payer };
  const underWay = await memory.find(route);
  if (underWay !== undefined) {
    await finish(context, underWay, deadline - clock.now(), signal).catch((error: unknown) => {
      if (!isDead(error)) throw error;
    });
  }

  // The caller's balance may be older than the arrival for a concurrent caller.
  const held = { targetChain: target.key, token: need.asset, owner: payer };
  const balance = await readBalance(context, held, limits);
  if (balance === undefined) return undefined;
  if (balance >= need.amount) return true;
  const missing = coverLoss(need.amount - balance);
  const request = { ...route, token, amount: larger(missing, minAmount) };
  return transferAgreed(context, { request, need: { ...need, balance } }, signal);
}

// A node that lags behind the arrival returns a balance from before the top-up.
async function readBalance(
  { bridge, arrivedIn, clock, pollIntervalMs }: TopUpContext,
  held: TargetBalanceRequest,
  { deadline, signal }: Limits,
): Promise<bigint | undefined> {
  const notBefore = arrivedIn.get(held.targetChain);
  while (true) {
    try {
      return await bridge.readTargetBalance({ notBefore, ...held });
    } catch (error) {
      if (notBefore === undefined || !isUnavailable(error) || clock.now() >= deadline) throw error;
    }
    await sleep(clock, pollIntervalMs, signal);
  }
}

/** Quotes, asks and transfers; again with a new quote where the terms have changed. */
async function transferAgreed(
  context: TopUpContext,
  { request, need }: { request: BridgeRequest; need: FundsNeed },
  signal: AbortSignal | undefined,
): Promise<boolean | undefined> {
  const { bridge, ask, timeoutMs } = context;
  for (let asked = 1; ; asked += 1) {
    const quote = await quoteIfPossible(bridge, request);
    if (quote === undefined) return undefined;
    if (quote.kind === "xautOft") {
      const text = "createTopUp: the token is gold, and no payment of dollars can be made with it";
      throw new BridgeError("invalid_configuration", text);
    }
    signal?.throwIfAborted();
    if ((await ask({ request, quote, need })) !== true) return false;
    signal?.throwIfAborted();
    try {
      const sent = await send(context, request, { agreed: quote, signal });
      await finish(context, sent, timeoutMs, signal);
      return true;
    } catch (error) {
      const isChanged = error instanceof BridgeError && error.code === "terms_changed";
      if (!isChanged || asked === maxAsked) throw error;
    }
  }
}

async function send(
  { bridge, memory, onProgress }: TopUpContext,
  request: BridgeRequest,
  how: { agreed: BridgeQuote; signal: AbortSignal | undefined },
): Promise<RememberedTransfer> {
  const { targetChain, recipient } = request;
  let sent: RememberedTransfer | undefined;
  async function report(progress: TransferProgress) {
    await onProgress?.(progress);
    if (progress.state !== "sending") return;
    // The store comes last: no other await stands between it and the broadcast.
    const { hash, transaction } = progress;
    sent = { targetChain, recipient, hash, transaction };
    await memory.remember(sent);
  }
  try {
    await bridge.bridge(request, { onProgress: report, ...how });
  } catch (error) {
    const isOver = error instanceof BridgeError && !error.moneyMayHaveMoved;
    if (isOver && sent !== undefined) await memory.forget(sent);
    throw error;
  }
  if (sent === undefined) throw new TypeError("The bridge has not reported what it has sent");
  return sent;
}

/**
 * Waits for a transfer's arrival, then removes it from the store; also if it has moved nothing and
 * never will.
 */
async function finish(
  { bridge, memory, arrivedIn, confirmations, pollIntervalMs, onProgress }: TopUpContext,
  transfer: RememberedTransfer,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { hash, transaction } = transfer;
  const how = { confirmations, timeoutMs: Math.max(1, waitMs), pollIntervalMs };
  try {
    const { targetBlock } = await bridge.track({ hash, transaction, ...how, signal, onProgress });
    const before = arrivedIn.get(transfer.targetChain) ?? 0n;
    arrivedIn.set(transfer.targetChain, larger(before, targetBlock));
  } catch (error) {
    if (isDead(error)) await memory.forget(transfer);
    throw error;
  }
  await memory.forget(transfer);
}

/** Returns whether a chain was not asked, and may be asked again. */
function isUnavailable(error: unknown): boolean {
  return error instanceof BridgeError && error.code === "rpc_unavailable" && !isClosed(error);
}

/** Returns whether a transfer has moved nothing, and never will. */
function isDead(error: unknown): boolean {
  if (!(error instanceof BridgeError)) return false;
  return error.code === "send_reverted" || error.code === "replaced";
}

/** Adds the loss that a bridge allows, 1 of 1000, so that the missing amount arrives. */
function coverLoss(missing: bigint): bigint {
  return (missing * 1000n + 998n) / 999n;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

async function quoteIfPossible(
  bridge: Bridge,
  request: BridgeRequest,
): Promise<BridgeQuote | undefined> {
  try {
    return await bridge.quoteBridge(request);
  } catch (error) {
    const isElsewhere =
      error instanceof BridgeError && (error.code === "no_route" || error.code === "same_chain");
    if (isElsewhere) return undefined;
    throw error;
  }
}
