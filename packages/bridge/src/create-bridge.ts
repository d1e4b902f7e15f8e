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
import { createTurns } from "./send/turns.ts";
import type { TrackOptions } from "./track/track-options.ts";
import { trackTransfer } from "./track/track-transfer.ts";

/** Brings tokens from one chain to others. Every method throws BridgeError, with one code for each kind of fault. */
export interface Bridge {
  /** What a transfer would cost, and the least that would arrive. Signs nothing, and needs no allowance. */
  quoteBridge(request: BridgeRequest): Promise<BridgeQuote>;
  /**
   * Approves what is missing, sends, and resolves when the transfer is in a block of the source chain. What cannot or
   * must not be sent is refused before anything is signed. Transfers of one bridge are made one after the other.
   */
  bridge(request: BridgeRequest, options?: BridgeCallOptions): Promise<BridgeResult>;
  /** Waits until a transfer has arrived on the target chain. */
  track(options: TrackOptions): Promise<Delivered>;
  /** The chain table, with what the configuration adds to it. */
  supportedChains(): readonly BridgeChain[];
  /** What can be sent from the source chain. */
  supportedTokens(): Promise<SupportedToken[]>;
  /** What a token of the source chain says of itself, whether it can be sent or not. */
  readToken(address: string): Promise<TokenFacts>;
  /** What an account holds on a target chain; `undefined` where it cannot be asked. */
  readTargetBalance(request: TargetBalanceRequest): Promise<bigint | undefined>;
  /** Ends the connections to chains. What is under way fails. */
  close(): void;
}

/**
 * Creates a bridge from the chain behind `rpcUrl` or `client`.
 *
 * @throws BridgeError `invalid_configuration`, which names everything that is wrong at once
 */
export function createBridge(options: BridgeOptions): Bridge {
  const context = readOptions(options);
  const turns = createTurns();
  return {
    quoteBridge: (request) => quoteTransfer(context, request),
    // Nonces and allowances are the account's: two transfers at once would take them from one another.
    bridge: (request, callOptions) =>
      turns.take(() => makeTransfer(context, request, callOptions), callOptions?.signal),
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
