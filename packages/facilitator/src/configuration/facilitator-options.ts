import type { Clock } from "@coinslot/chain";
import type { Address, Asset, Network } from "@coinslot/protocol";
import type { HookSet } from "../hooks.ts";
import type { Logger } from "../logger.ts";
import type { ChannelOptions } from "./channel-options.ts";
import type { HostedChannelOptions } from "./hosted-channel-options.ts";
import type { OperatorOptions } from "./operator-options.ts";
import type { RefundOptions } from "./refund-options.ts";
import type { RelayerOptions } from "./relayer-account.ts";
import type { WebhookOptions } from "./webhook-options.ts";

/**
 * Blocks that must stand on top of the one with the transfer: 0 is "included". A function decides
 * by the amount, in the token's smallest unit.
 */
export type Depth = number | ((amount: bigint) => number);

/** Gas fees of a network. In the chain's native coin's smallest unit (wei) for each gas. */
export interface FeeOptions {
  /**
   * Most that a unit of gas may cost, tip included. Payments wait while the chain asks for more.
   * Default by chain, such as 100 gwei on Plasma; 500 gwei on an unknown chain. It bounds the cost
   * of a lying node.
   */
  maxFeePerGas?: bigint | undefined;
  /** Tip, where the chain takes one. */
  maxPriorityFeePerGas?: bigint | undefined;
}

/** A network that is served. */
export interface FacilitatorNetworkOptions {
  /** CAIP-2: `eip155:9745`. */
  network: Network;
  /**
   * HTTP JSON-RPC endpoints, the preferred one first. Besides, a WebSocket (`wss://…`) of a node
   * that publishes new blocks. They then arrive at once, and are polled for only while it is
   * silent.
   */
  rpcUrls?: readonly (string | undefined)[] | undefined;
  /** The same for one endpoint. */
  rpcUrl?: string | undefined;
  /**
   * Budget of JSON-RPC calls to each endpoint in any second, such as a provider's limit. Each
   * process keeps it by itself. Broadcasts and receipts go before verifications. Default: none.
   */
  callsPerSecond?: number | undefined;
  relayer: RelayerOptions | undefined;
  /**
   * Relayers whose keys are to be taken out. They take no new payments. Their transactions are
   * followed, sent again and replaced until they are final. Default: none.
   */
  retiringRelayers?: readonly (RelayerOptions | undefined)[] | undefined;
  /**
   * The tokens that are served, as addresses, or with the EIP-712 domain that is checked at start.
   * Every EIP-3009 token when absent. That is fine where the seller's own routes choose the token,
   * and not where `/settle` is open to others.
   */
  assets?: readonly (Address | Asset)[] | undefined;
  /** Depth at which a payment counts as settled and its answer goes out. Default 0. */
  serveAfter?: Depth | undefined;
  /**
   * Depth at which a settlement is no longer watched for reorganisations. Default: the network's
   * usual depth.
   */
  finalAfter?: number | undefined;
  fees?: FeeOptions | undefined;
  /** Longest usual time between two blocks, in seconds. Known for known networks. */
  blockTimeSeconds?: number | undefined;
  /** Gas that one token call may use. Default 300,000. */
  callGas?: bigint | undefined;
  /**
   * Relayer balance in wei below which new payments are refused. Default by chain, such as 0.001
   * XPL on Plasma, 0.0002 ETH on Base. On an unknown chain it is 0.001 of the native coin.
   */
  minimumBalance?: bigint | undefined;
  /** Relayer balance in wei below which the log warns. Default ten times the minimum. */
  warningBalance?: bigint | undefined;
}

/** Options of `createFacilitator`. */
export interface FacilitatorOptions {
  networks: readonly FacilitatorNetworkOptions[];
  /**
   * URL of the ledger: `sqlite:./coinslot.db`, or `postgres://…` for several processes.
   */
  ledger: string | undefined;
  /** A pino logger, or one of its shape. Default: silent. */
  logger?: Logger | undefined;
  /**
   * Deletes payments that ended this many days ago, at least 1. By default none is ever deleted:
   * the ledger is the seller's record of them. Payments that may still be executed, resumed or
   * delivered stay.
   */
  keepPaymentsDays?: number | undefined;
  /**
   * Deletes signatures, signed transactions and the requests' fingerprints of payments that ended
   * this many days ago, at least 1. Default 30, or `keepPaymentsDays` if that is less.
   */
  keepSignaturesDays?: number | undefined;
  /**
   * Ends payments that became final this many days ago, at least 1, and were never delivered: their
   * buyers get no answer for them any more. By default, and with `Infinity`, a buyer may come back
   * at any time.
   */
  keepUndeliveredDays?: number | undefined;
  /**
   * Time for which a chain that cannot be read is asked again at the start, until that is a
   * problem. Default 5. A fault that no retry can mend, such as an endpoint of another chain, is
   * reported at once.
   */
  startTimeoutSeconds?: number | undefined;
  /**
   * The float account that pays refunds. Without it, refunds wait for a signature made elsewhere.
   */
  refunds?: RefundOptions | undefined;
  /**
   * Payment channels. `coinslot doctor` says whether a chain has their contracts.
   * `{}` takes the defaults. Default: none is followed or claimed.
   */
  channels?: ChannelOptions | undefined;
  /**
   * Channels of other sellers: verified, funded, claimed, settled and refunded for callers with a
   * key. `facilitatorRouter` serves them. Default: none.
   */
  hostedChannels?: HostedChannelOptions | undefined;
  /**
   * Serves the operator's commands over HTTP, to callers with a key. Default: only on the socket
   * beside a SQLite ledger.
   */
  operators?: OperatorOptions | undefined;
  /**
   * Receivers of events: of payments that settle, become final, are reverted or fail, and of
   * refunds. At least once, in the order of each payment, for three days. They replace those of the
   * ledger; `[]` ends all. Default: this process leaves them as they are, and delivers none.
   */
  webhooks?: readonly WebhookOptions[] | undefined;
  /** Hooks to begin with; more can be added by the methods of the same names. */
  hooks?: Partial<HookSet> | undefined;
  /** Timers, and their monotonic time, for waiting and retrying. Default: this process's. */
  clock?: Clock | undefined;
  /** Unix milliseconds, with which payments' times are compared. Default `Date.now`. */
  now?: (() => number) | undefined;
}
