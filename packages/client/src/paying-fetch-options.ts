import { setTimeout as sleep } from "node:timers/promises";
import { createFileStore } from "./budget/budget-file.ts";
import { createMemoryStore } from "./budget/budget-store.ts";
import { createSpendingBudget, type SpendingBudget } from "./budget/spending-budget.ts";
import { type Budget, readBudget, type SpendableAsset } from "./budget/spending-policy.ts";
import { createTopUpLimit, type TopUpLimit } from "./budget/top-up-limit.ts";
import { type ChainReader, createChainReader, type RpcUrls } from "./chain/chain-reader.ts";
import {
  type ChannelContext,
  type ChannelOptions,
  readChannelOptions,
} from "./channels/channel-options.ts";
import { PaymentError } from "./payment-error.ts";
import type { PaymentEvent } from "./payment-event.ts";
import type { Persistence } from "./send/send-payment.ts";
import { type PayerOptions, type PayingAccount, readPayer } from "./sign/payer.ts";
import type { SignedPayment } from "./sign/signed-payment.ts";
import type { TopUp } from "./top-up.ts";
import { createTopUpTurns, type TopUpTurns } from "./top-up-turns.ts";
import { knownProtocols, type Protocol } from "./wires/wire.ts";

/** Options of a fetch that pays. */
export type PayingFetchOptions = PayerOptions & {
  /**
   * RPC endpoints for the payer's balances. Payments are made on these networks and on no other.
   */
  rpcUrls: RpcUrls;
  /**
   * Protocols in which payments are made, in order of preference. Of several offers in one answer,
   * one in the first protocol is paid if it can be. Default `["x402", "mpp"]`.
   */
  protocols?: readonly Protocol[] | undefined;
  /** Spending limits. Default: a small budget in a known dollar stablecoin. */
  budget?: Budget | undefined;
  /**
   * Pays by payment channels (`batch-settlement`) where a seller offers them. Default: never.
   */
  channels?: ChannelOptions | undefined;
  /** Sends the requests. Must not repeat them by itself. Default: the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /**
   * Called with each state of a payment, and not awaited. A listener that throws or rejects causes
   * a warning, and changes nothing.
   */
  onPayment?: ((event: PaymentEvent) => void) | undefined;
  /**
   * Awaited between signing and sending. It can store the payment where it outlives this process,
   * for `resume`. If it throws, nothing is sent. A payment that it received may be stored. So its
   * booking stays until the payment has expired unused, even if it is never sent.
   */
  beforeSend?: ((payment: SignedPayment) => Promise<void> | void) | undefined;
  /** Called for funds when no offered network has them. */
  topUp?: TopUp | undefined;
  /** Pays over plain HTTP too. Loopback needs no such permission. */
  allowInsecureHttp?: boolean | undefined;
  /** Longest body that can be sent again with a payment. Default 4 MiB. */
  maxBodyBytes?: number | undefined;
  /** Longest validity of an authorization in seconds. Default 600, at most 3600. */
  maxValiditySeconds?: number | undefined;
  /** Timeout of the chains for the payer's balances. Default 5000. */
  balanceTimeoutMs?: number | undefined;
  /** Maximum number of times one payment is sent. Default 5. */
  maxAttempts?: number | undefined;
  /**
   * Timeout of one attempt to pay, up to its answer: the headers, and the reason of a refusal.
   * Default 120 000. An offer in a body has the same time, but at most 10 s.
   */
  attemptTimeoutMs?: number | undefined;
  /** Longest pause between two attempts. Default 30 000. */
  maxWaitMs?: number | undefined;
  /** Unix milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Cryptographically random bytes. Default: Web Crypto. */
  randomBytes?: ((size: number) => Uint8Array) | undefined;
  /** Resolves after the given milliseconds, rejects when the signal aborts. Default: a timer. */
  wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
};

/** The options, read and checked. */
export interface PayingFetchContext {
  account: PayingAccount;
  chains: ChainReader;
  protocols: readonly Protocol[];
  assets: readonly SpendableAsset[];
  budget: SpendingBudget;
  channels: ChannelContext | undefined;
  fetch: typeof fetch;
  onPayment: (event: PaymentEvent) => void;
  beforeSend: ((payment: SignedPayment) => Promise<void> | void) | undefined;
  topUp: TopUp | undefined;
  topUpLimit: TopUpLimit;
  topUpTurns: TopUpTurns;
  allowInsecureHttp: boolean;
  maxBodyBytes: number;
  maxValiditySeconds: number;
  persistence: Persistence;
  now: () => number;
  randomBytes: (size: number) => Uint8Array;
  wait: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Reads the options.
 *
 * @throws PaymentError `invalid_configuration`, which names all faults at once.
 */
export function readOptions(options: PayingFetchOptions): PayingFetchContext {
  const problems: string[] = [];
  const positive = (key: NumericOption, byDefault: number): number => {
    const value = options[key] ?? byDefault;
    if (!Number.isSafeInteger(value) || value <= 0)
      problems.push(`${key} is not a positive integer`);
    else if (key.endsWith("Ms") && value > maxTimerMs) {
      problems.push(`${key} is longer than ${maxTimerMs}`);
    } else if (key === "maxValiditySeconds" && value > longestValiditySeconds) {
      problems.push(`${key} is longer than ${longestValiditySeconds}`);
    }
    return value;
  };
  const { rpcUrls, budget = {}, now = Date.now } = options;
  const account = readPayer(options, problems);
  const timeoutMs = positive("balanceTimeoutMs", 5000);
  const chains = createChainReader({ rpcUrls: rpcUrls ?? {}, timeoutMs, problems });
  const protocols = readProtocols(options.protocols, problems);
  const assets = readBudget(budget, problems);
  const channels = options.channels && readChannelOptions(options.channels, problems);
  const store = budget.file === undefined ? createMemoryStore() : createFileStore(budget.file);
  const limits = {
    maxBodyBytes: positive("maxBodyBytes", 4 * 1024 * 1024),
    maxValiditySeconds: positive("maxValiditySeconds", 600),
    persistence: {
      maxAttempts: positive("maxAttempts", 5),
      attemptTimeoutMs: positive("attemptTimeoutMs", 120_000),
      maxWaitMs: positive("maxWaitMs", 30_000),
    },
  };
  if (account === undefined || problems.length > 0) {
    throw new PaymentError("invalid_configuration", `createPayingFetch: ${problems.join("; ")}`);
  }
  return {
    ...limits,
    account,
    chains,
    protocols,
    assets,
    budget: createSpendingBudget({ store, now, chains }),
    channels,
    fetch: options.fetch ?? fetch,
    onPayment: guard(options.onPayment),
    beforeSend: options.beforeSend,
    topUp: options.topUp,
    topUpLimit: createTopUpLimit(),
    topUpTurns: createTopUpTurns(),
    allowInsecureHttp: options.allowInsecureHttp ?? false,
    now,
    randomBytes:
      options.randomBytes ?? ((size) => globalThis.crypto.getRandomValues(new Uint8Array(size))),
    wait: options.wait ?? ((ms, signal) => sleep(ms, undefined, signal ? { signal } : {})),
  };
}

function readProtocols(
  given: PayingFetchOptions["protocols"] = knownProtocols,
  problems: string[],
): readonly Protocol[] {
  const isKnown = given.every((name) => knownProtocols.includes(name));
  if (given.length === 0 || !isKnown || new Set(given).size < given.length) {
    problems.push(`protocols is not a list of ${knownProtocols.join(" and ")}, each once`);
  }
  return given;
}

/** The budget counts a payment in the hour of its end: that one or the next. */
const longestValiditySeconds = 3600;

/** Node fires a timer with a longer delay at once. */
const maxTimerMs = 2 ** 31 - 1;

type NumericOption =
  | "maxBodyBytes"
  | "maxValiditySeconds"
  | "balanceTimeoutMs"
  | "maxAttempts"
  | "attemptTimeoutMs"
  | "maxWaitMs";

function guard(onPayment: PayingFetchOptions["onPayment"]): PayingFetchContext["onPayment"] {
  // An async function starts synchronously. An unhandled rejection would end the process.
  const tell = async (event: PaymentEvent) => onPayment?.(event);
  return (event) => {
    tell(event).catch((error: unknown) => {
      process.emitWarning(error instanceof Error ? error : new Error("onPayment threw"));
    });
  };
}
