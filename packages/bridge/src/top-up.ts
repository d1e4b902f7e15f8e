import { isAddressEqual } from "viem";
import type { EvmBridgeChain } from "./bridge-chain.ts";
import { BridgeError } from "./bridge-error.ts";
import type { BridgeRequest } from "./bridge-request.ts";
import type { Bridge } from "./create-bridge.ts";
import { parseEvmAddress } from "./evm-address.ts";
import type { BridgeQuote } from "./quote-transfer.ts";
import type { TransferProgress } from "./transfer-progress.ts";

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
  need: FundsNeed;
}

export interface TopUpOptions {
  /** From the chain where the tokens are, with `targetRpcUrls` for the chains where they are needed. */
  bridge: Bridge;
  /** The token on the source chain. */
  token: string;
  /** Is asked before anything is signed; only `true` lets it happen. */
  ask: (proposal: TopUpProposal) => boolean | Promise<boolean>;
  /** Bridges at least so much, however little is needed, in the token's smallest unit. Default: what is needed. */
  leastAmount?: bigint | undefined;
  /** How deep on the target chain before it is spent. Default 1. */
  confirmations?: number | undefined;
  /** How long to wait for the tokens to arrive. Default 600 000. */
  timeoutMs?: number | undefined;
  pollIntervalMs?: number | undefined;
  onProgress?: ((progress: TransferProgress) => void | Promise<void>) | undefined;
}

/**
 * Creates the `topUp` of a fetch that pays (`createPayingFetch` of @coinslot/client): when no offered network has the
 * funds, it quotes, asks, bridges and waits. It resolves to whether the tokens are there: `false` if none of the needs
 * can be served by the bridge, or `ask` declined.
 *
 * The function it returns throws BridgeError when a transfer fails, or does not arrive in time.
 */
export function createTopUp(options: TopUpOptions): (request: FundsRequest) => Promise<boolean> {
  const { bridge, token, ask, leastAmount = 0n, confirmations = 1, onProgress } = options;
  const { timeoutMs = 600_000, pollIntervalMs } = options;

  return async function topUp({ payer, needs, signal }) {
    for (const need of needs) {
      const target = findTarget(bridge, need);
      if (target === undefined) continue;
      const amount = larger(coverLoss(need.amount - need.balance), leastAmount);
      const request = { targetChain: target.key, recipient: payer, token, amount };
      const quote = await quoteIfPossible(bridge, request);
      if (quote === undefined) continue;
      signal?.throwIfAborted();
      if ((await ask({ request, quote, need })) !== true) return false;
      signal?.throwIfAborted();
      const { hash } = await bridge.bridge(request, { onProgress });
      await bridge.track({ hash, confirmations, timeoutMs, pollIntervalMs, signal, onProgress });
      return true;
    }
    return false;
  };
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
