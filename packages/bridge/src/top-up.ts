import { type Clock, sleep, systemClock } from "@coinslot/chain";
import { isAddressEqual } from "viem";
import { parseEvmAddress } from "./addresses/evm-address.ts";
import { BridgeError } from "./bridge-error.ts";
import type { BridgeRequest } from "./bridge-request.ts";
import { isClosed } from "./chains/ask-chain.ts";
import type { EvmBridgeChain } from "./chains/bridge-chain.ts";
import type { TargetBalanceRequest } from "./chains/target-balance.ts";
import type { Bridge } from "./create-bridge.ts";
import type { BridgeQuote } from "./quote/quote-transfer.ts";
import { createTransferMemory, type RememberedTransfer } from "./send/transfer-memory.ts";
import type { TransferProgress } from "./send/transfer-progress.ts";
import { createTurns, type Turns } from "./send/turns.ts";
import { checkWait } from "./track/track-options.ts";

/** A fetch's need of funds for a payment. Amounts in the smallest unit. */
export interface FundsNeed {
  /** CAIP-2, such as "eip155:9745". */
  network: string;
  /** The token there. */
  asset: string;
  amount: bigint;
  balance: bigint;
}

/** A request for funds. Any one of `needs` is enough; the best comes first. */
export interface FundsRequest {
  payer: string;
  needs: readonly FundsNeed[];
  signal: AbortSignal | undefined;
}

/** A proposed transfer, with its price. */
export interface TopUpProposal {
  request: BridgeRequest;
  quote: BridgeQuote;
  /** With the current balance. */
  need: FundsNeed;
}

/** Maximum number of quotes presented for one transfer, while prices rise. */
const maxAsked = 3;

export interface TopUpOptions {
  /** A bridge from the source chain, with `targetRpcUrls` for the chains that need the tokens. */
  bridge: Bridge;
  /** The token on the source chain. */
  token: string;
  /**
   * Called before the first signature; only `true` permits the transfer. The quote then bounds all
   * that is paid. Where that is not enough any more, it is called again with a new quote, at most
   * three times in all.
   */
  ask: (proposal: TopUpProposal) => boolean | Promise<boolean>;
  /**
   * A file, for this top-up alone, that keeps the transfer under way over restarts. Without one, it
   * is kept for the lifetime of the process.
   */
  file?: string | undefined;
  /** Minimum amount of a transfer, in the token's smallest unit. Default: the missing amount. */
  minAmount?: bigint | undefined;
  /** Required depth on the target chain before it is spent. Default 1. */
  confirmations?: number | undefined;
  /** Timeout of the tokens' arrival. Default 600 000. */
  timeoutMs?: number | undefined;
  pollIntervalMs?: number | undefined;
  onProgress?: ((progress: TransferProgress) => void | Promise<void>) | undefined;
  clock?: Clock | undefined;
}

/**
 * Creates the `topUp` of a fetch that pays (`createPayingFetch` of @coinslot/client). When no
 * offered network has the funds, it quotes, asks, bridges and waits. It resolves to whether the
 * tokens are there: `false` if the bridge can serve none of the needs, or `ask` declined.
 *
 * A transfer is stored before it is sent, until it has arrived or certainly never will. While one
 * may be under way to a payer on a chain, no other is sent there. It is awaited, and sent again as
 * it is if no node has it. So neither a crash nor a timeout makes it bridge twice, and concurrent
 * callers share the arriving tokens.
 *
 * The function it returns throws BridgeError when a transfer fails, or does not arrive in time.
 *
 * @example
 * ```ts
 * const topUp = createTopUp({
 *   bridge,
 *   token: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
 *   file: "top-up.json", // remembers the transfer under way over restarts
 *   ask: ({ quote }) => confirm(`Bridge for ${quote.fee + quote.bridgeFee}?`),
 * });
 * const pay = createPayingFetch({ account, rpcUrls, topUp });
 * ```
 *
 * @throws BridgeError `invalid_configuration`
 */
export function createTopUp(options: TopUpOptions): (request: FundsRequest) => Promise<boolean> {
  const { bridge, token, ask, minAmount = 0n, confirmations = 1, onProgress } = options;
  const { timeoutMs = 600_000, pollIntervalMs = 2_000, clock = systemClock } = options;
  checkOptions(options);
  const memory = createTransferMemory(options.file);
  const turnsByRoute = new Map<string, Turns>();
  /** By target chain, the newest block of an arrival. */
  const arrivedIn = new Map<string, bigint>();

  return async function topUp({ payer, needs, signal }) {
    const deadline = clock.now() + timeoutMs;
    for (const { need, target } of await underWayFirst(payer, needs)) {
      const serveInTurn = () => serve({ need, target, payer, signal, deadline });
      const isThere = await turnsOf(target.key, payer).take(serveInTurn, signal);
      if (isThere !== undefined) return isThere;
    }
    return false;
  };

  /** `undefined`: the bridge does not go there, or the arrival could not be seen. */
  async function serve(options: {
    need: FundsNeed;
    target: EvmBridgeChain;
    payer: string;
    signal: AbortSignal | undefined;
    deadline: number;
  }): Promise<boolean | undefined> {
    const { target, payer, signal, deadline } = options;
    const route = { targetChain: target.key, recipient: payer };
    const underWay = await memory.find(route);
    if (underWay !== undefined) {
      await finish(underWay, deadline - clock.now(), signal).catch((error: unknown) => {
        if (!isDead(error)) throw error;
      });
    }

    // The caller's balance may be older than the arrival for a concurrent caller.
    const { asset, amount: needed } = options.need;
    const held = { targetChain: target.key, token: asset, owner: payer };
    const balance = await readBalance(held, deadline, signal);
    if (balance === undefined) return undefined;
    if (balance >= needed) return true;
    const need = { ...options.need, balance };

    const request = { ...route, token, amount: larger(coverLoss(needed - balance), minAmount) };
    for (let asked = 1; ; asked += 1) {
      const quote = await quoteIfPossible(bridge, request);
      if (quote === undefined) return undefined;
      if (quote.kind === "xautOft") {
        const text =
          "createTopUp: the token is gold, and no payment of dollars can be made with it";
        throw new BridgeError("invalid_configuration", text);
      }
      signal?.throwIfAborted();
      if ((await ask({ request, quote, need })) !== true) return false;
      signal?.throwIfAborted();
      try {
        await finish(await send(request, { agreed: quote, signal }), timeoutMs, signal);
        return true;
      } catch (error) {
        const isChanged = error instanceof BridgeError && error.code === "terms_changed";
        if (!isChanged || asked === maxAsked) throw error;
      }
    }
  }

  // A node that lags behind the arrival returns a balance from before the top-up.
  async function readBalance(
    held: TargetBalanceRequest,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<bigint | undefined> {
    const notBefore = arrivedIn.get(held.targetChain);
    while (true) {
      try {
        return await bridge.readTargetBalance({ notBefore, ...held });
      } catch (error) {
        if (notBefore === undefined || !isUnavailable(error) || clock.now() >= deadline)
          throw error;
      }
      await sleep(clock, pollIntervalMs, signal);
    }
  }

  async function send(
    request: BridgeRequest,
    how: { agreed: BridgeQuote; signal: AbortSignal | undefined },
  ): Promise<RememberedTransfer> {
    const { targetChain, recipient } = request;
    let sent: RememberedTransfer | undefined;
    async function tell(progress: TransferProgress) {
      await onProgress?.(progress);
      if (progress.state !== "sending") return;
      // The store comes last: no other await stands between it and the broadcast.
      const { hash, transaction } = progress;
      sent = { targetChain, recipient, hash, transaction };
      await memory.remember(sent);
    }
    try {
      await bridge.bridge(request, { onProgress: tell, ...how });
    } catch (error) {
      const isOver = error instanceof BridgeError && !error.moneyMayHaveMoved;
      if (isOver && sent !== undefined) await memory.forget(sent);
      throw error;
    }
    if (sent === undefined) throw new TypeError("The bridge has not told what it has sent");
    return sent;
  }

  /**
   * Waits for a transfer's arrival, then removes it from the store; also if it has moved nothing
   * and never will.
   */
  async function finish(
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

  function turnsOf(targetChain: string, payer: string): Turns {
    const route = `${targetChain} ${payer.toLowerCase()}`;
    const turns = turnsByRoute.get(route) ?? createTurns();
    turnsByRoute.set(route, turns);
    return turns;
  }

  /**
   * The needs on chains that the bridge knows. Transfers under way are awaited before more is sent.
   */
  async function underWayFirst(payer: string, needs: readonly FundsNeed[]) {
    const found = await Promise.all(
      needs.map(async (need) => {
        const target = findTarget(bridge, need);
        if (target === undefined) return undefined;
        const underWay = await memory.find({ targetChain: target.key, recipient: payer });
        return { need, target, rank: underWay === undefined ? 1 : 0 };
      }),
    );
    return found.filter((each) => each !== undefined).sort((a, b) => a.rank - b.rank);
  }
}

function checkOptions({ minAmount, ...options }: TopUpOptions): void {
  checkWait("createTopUp", options);
  if (minAmount === undefined || (typeof minAmount === "bigint" && minAmount >= 0n)) return;
  const text = "createTopUp: minAmount is no bigint of zero or more";
  throw new BridgeError("invalid_configuration", text);
}

/** Whether a chain was not asked, and may be asked again. */
function isUnavailable(error: unknown): boolean {
  return error instanceof BridgeError && error.code === "rpc_unavailable" && !isClosed(error);
}

/** Whether a transfer has moved nothing, and never will. */
function isDead(error: unknown): boolean {
  if (!(error instanceof BridgeError)) return false;
  return error.code === "send_reverted" || error.code === "replaced";
}

/** The chain of a need, if the token that arrives there is the required one. */
function findTarget(bridge: Bridge, need: FundsNeed): EvmBridgeChain | undefined {
  const asset = parseEvmAddress(need.asset);
  if (asset instanceof Error) return undefined;
  for (const chain of bridge.supportedChains()) {
    if (chain.type !== "evm" || need.network !== `eip155:${chain.chainId}`) continue;
    if (chain.token !== undefined && isAddressEqual(chain.token, asset)) return chain;
  }
  return undefined;
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
