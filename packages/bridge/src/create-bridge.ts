import { createMutex } from "@coinslot/concurrency";
import { requireEvmAddress } from "./addresses/evm-address.ts";
import { type BridgeOptions, readOptions } from "./bridge-options.ts";
import type { BridgeRequest } from "./bridge-request.ts";
import type { BridgeChain } from "./chains/bridge-chain.ts";
import { findSourceChain } from "./chains/source-chain.ts";
import { listSupportedTokens, type SupportedToken } from "./chains/supported-tokens.ts";
import { readTargetBalance, type TargetBalanceRequest } from "./chains/target-balance.ts";
import { readTokenFacts, type TokenFacts } from "./chains/token-facts.ts";
import { type BridgeQuote, quoteTransfer } from "./quote/quote-transfer.ts";
import { type BridgeCallOptions, type BridgeResult, makeTransfer } from "./send/make-transfer.ts";
import type { Delivered } from "./send/transfer-progress.ts";
import type { TrackOptions } from "./track/track-options.ts";
import { trackTransfer } from "./track/track-transfer.ts";

/**
 * Sends tokens from one chain to others. Every method throws BridgeError, with one code for each
 * kind of fault.
 */
export interface Bridge {
  /** Cost of a transfer, and the least that would arrive. Signs nothing, and needs no allowance. */
  quoteBridge(request: BridgeRequest): Promise<BridgeQuote>;
  /**
   * Makes the missing approvals, sends, and resolves when the transfer is in a block of the source
   * chain. Every refusal comes before the first signature. Transfers of one bridge are made one
   * after the other.
   */
  bridge(request: BridgeRequest, options?: BridgeCallOptions): Promise<BridgeResult>;
  /** Waits until a transfer has arrived on the target chain. */
  track(options: TrackOptions): Promise<Delivered>;
  /** The chain table, with the chains that the configuration adds. */
  supportedChains(): readonly BridgeChain[];
  /** The tokens that can be sent from the source chain. */
  supportedTokens(): Promise<SupportedToken[]>;
  /** Metadata of a token of the source chain, whether it can be sent or not. */
  readToken(address: string): Promise<TokenFacts>;
  /** An account's balance on a target chain; `undefined` where no node answers. */
  readTargetBalance(request: TargetBalanceRequest): Promise<bigint | undefined>;
  /** Ends the connections to chains. Pending calls fail. */
  close(): void;
}

/**
 * Creates a bridge from the chain behind `rpcUrl` or `client`.
 *
 * @example
 * ```ts
 * const bridge = createBridge({
 *   account: privateKeyToAccount(`0x${process.env.PRIVATE_KEY}`),
 *   rpcUrl: "https://arb1.arbitrum.io/rpc", // the chain where the tokens are
 *   targetRpcUrls: { plasma: "https://rpc.plasma.to" }, // to see them arrive
 *   bridgeMaxFee: 1_000_000_000_000_000n, // LayerZero may take 0.001 ETH
 * });
 * const request = { targetChain: "plasma", recipient, token, amount: 5_000_000n }; // 5 USDT0
 * const agreed = await bridge.quoteBridge(request); // show fees and amountReceived, and ask
 * const { hash } = await bridge.bridge(request, { agreed }); // takes no more, brings no less
 * const { targetHash } = await bridge.track({ hash });
 * ```
 *
 * @throws BridgeError `invalid_configuration`, which names all faults at once
 */
export function createBridge(options: BridgeOptions): Bridge {
  const context = readOptions(options);
  const mutex = createMutex();
  return {
    quoteBridge: (request) => quoteTransfer(context, request),
    // Nonces and allowances belong to the account: two transfers at once would take them from one
    // another.
    bridge: (request, callOptions) =>
      mutex.run(() => makeTransfer(context, request, callOptions), callOptions?.signal),
    track: (trackOptions) => trackTransfer(context, trackOptions),
    supportedChains: () => context.chains.all,
    supportedTokens: () => listSupportedTokens(context),
    async readToken(address) {
      const token = requireEvmAddress(address, "token", "invalid_token");
      return readTokenFacts((await findSourceChain(context)).client, token);
    },
    readTargetBalance: (request) => readTargetBalance(context, request),
    close: context.connections.close,
  };
}
