import type { Clock } from "@coinslot/chain";
import type { KeyedMutex } from "@coinslot/concurrency";
import type { Bridge } from "../create-bridge.ts";
import type { TransferMemory } from "../send/transfer-memory.ts";
import type { TransferProgress } from "../send/transfer-progress.ts";
import type { TopUpProposal } from "./funds-request.ts";

export interface TopUpOptions {
  /** A bridge from the source chain, with `targetRpcUrls` for the chains that need the tokens. */
  bridge: Bridge;
  /** The token on the source chain. */
  token: string;
  /**
   * Called before the first signature; only `true` permits the transfer. The quote then bounds all
   * that is paid. Where that no longer suffices, it is called again with a new quote, at most three
   * times in all.
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

/** The options of a top-up with their defaults, and its state. */
export interface TopUpContext
  extends Pick<TopUpOptions, "bridge" | "token" | "ask" | "onProgress"> {
  minAmount: bigint;
  confirmations: number;
  timeoutMs: number;
  pollIntervalMs: number;
  clock: Clock;
  memory: TransferMemory;
  /** One transfer at a time for a payer on a chain: the key is chain and payer. */
  routeMutex: KeyedMutex<string>;
  /** By target chain, the newest block of an arrival. */
  arrivedIn: Map<string, bigint>;
}
