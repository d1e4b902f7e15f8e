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

/** What a payer would have to hold for a payment, as a fetch that pays tells it. Amounts in the smallest unit. */
export interface FundsNeed {
  /** CAIP-2, such as "eip155:9745". */
  network: string;
  /** The token there. */
  asset: string;
  amount: bigint;
  balance: bigint;
}

/** Asks for funds. Any one of `needs` is enough; the best comes first. */
export interface FundsRequest {
  payer: string;
  needs: readonly FundsNeed[];
  signal: AbortSignal | undefined;
}

/** What is about to be bridged, and at what price. */
export interface TopUpProposal {
  request: BridgeRequest;
  quote: BridgeQuote;
  /** With the balance of this moment. */
  need: FundsNeed;
}

/** Quotes that are asked about for one transfer, while prices rise. */
const maxAsked = 3;

export interface TopUpOptions {
  /** From the chain where the tokens are, with `targetRpcUrls` for the chains where they are needed. */
  bridge: Bridge;
  /** The token on the source chain. */
  token: string;
  /**
   * Is asked before anything is signed; only `true` lets it happen. The quote then bounds all that is paid. Where that is
   * not enough any more, it is asked again with a new quote, at most three times in all.
   */
  ask: (proposal: TopUpProposal) => boolean | Promise<boolean>;
  /**
   * A file, for this top-up alone, that remembers the transfer under way over restarts. Without one, it is remembered as
   * long as the process lives.
   */
  file?: string | undefined;
  /** Bridges at least so much, however little is needed, in the token's smallest unit. Default: what is needed. */
  minAmount?: bigint | undefined;
  /** How deep on the target chain before it is spent. Default 1. */
  confirmations?: number | undefined;
  /** How long to wait for the tokens to arrive. Default 600 000. */
  timeoutMs?: number | undefined;
  pollIntervalMs?: number | undefined;
  onProgress?: ((progress: TransferProgress) => void | Promise<void>) | undefined;
  clock?: Clock | undefined;
}

/**
 * Creates the `topUp` of a fetch that pays (`createPayingFetch` of @coinslot/client): when no offered network has the
 * funds, it quotes, asks, bridges and waits. It resolves to whether the tokens are there: `false` if none of the needs
 * can be served by the bridge, or `ask` declined.
 *
 * A transfer is remembered before it is sent, until it has arrived or certainly never will. As long as one may be under
 * way to a payer on a chain, no other is sent there: it is waited for, and sent again as it is if no node has it. So
 * neither a crash nor a timeout makes it bridge twice, and those who ask at the same time share what arrives.
 *
 * The function it returns throws BridgeError when a transfer fails, or does not arrive in time.
 *
 * @throws BridgeError `invalid_configuration`
 */
export function createTopUp(options: TopUpOptions): (request: FundsRequest) => Promise<boolean> {
  const { bridge, token, ask, minAmount = 0n, confirmations = 1, onProgress } = options;
  const { timeoutMs = 600_000, pollIntervalMs = 2_000, clock = systemClock } = options;
  checkOptions(options);
  const memory = createTransferMemory(options.file);
  const turnsByRoute = new Map<string, Turns>();
  /** By target chain, the newest block in which something has arrived. */
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

  /** `undefined`: the bridge does not go there, or nobody could see it arrive. */
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

    // What the caller has seen may be older than what has arrived for somebody else meanwhile.
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

  // Before a node knows of what has arrived, it tells a balance that looks as if nothing had been brought.
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
      // Nothing stands between this and the node.
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

  /** Sees a transfer arrive, and forgets it then; also if it has moved nothing and never will. */
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

  /** The needs on chains that the bridge knows. What may be on its way already is waited for before more is sent. */
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

/** The chain of a need, if the token that arrives there is the one that is needed. */
function findTarget(bridge: Bridge, need: FundsNeed): EvmBridgeChain | undefined {
  const asset = parseEvmAddress(need.asset);
  if (asset instanceof Error) return undefined;
  for (const chain of bridge.supportedChains()) {
    if (chain.type !== "evm" || need.network !== `eip155:${chain.chainId}`) continue;
    if (chain.token !== undefined && isAddressEqual(chain.token, asset)) return chain;
  }
  return undefined;
}

/** So much that what is missing arrives, if as much is lost on the way as a bridge allows: 1 of 1000. */
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
