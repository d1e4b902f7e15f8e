import { setTimeout as sleep } from "node:timers/promises";
import { createFileStore } from "./budget/budget-file.ts";
import { createMemoryStore } from "./budget/budget-store.ts";
import { createSpendingBudget, type SpendingBudget } from "./budget/spending-budget.ts";
import { type Budget, readBudget, type SpendableAsset } from "./budget/spending-policy.ts";
import { createTopUpLimit, type TopUpLimit } from "./budget/top-up-limit.ts";
import { type ChainReader, createChainReader, type RpcUrls } from "./chain/chain-reader.ts";
import { PaymentError } from "./payment-error.ts";
import type { PaymentEvent } from "./payment-event.ts";
import type { Persistence } from "./send/send-payment.ts";
import { type PayerOptions, type PayingAccount, readPayer } from "./sign/payer.ts";
import type { SignedPayment } from "./sign/signed-payment.ts";
import type { TopUp } from "./top-up.ts";

/** What a fetch that pays is made of. */
export type PayingFetchOptions = PayerOptions & {
  /** Where to look for the payer's funds. Payments are made on these networks and on no other. */
  rpcUrls: RpcUrls;
  /** What may be spent. Without one, a little in a known dollar stablecoin. */
  budget?: Budget | undefined;
  /** Sends the requests. Must not repeat them by itself. Default: the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /**
   * Is told where each payment stands, and not waited for. What it throws, at once or later, is warned
   * about, and changes nothing.
   */
  onPayment?: ((event: PaymentEvent) => void) | undefined;
  /**
   * Is awaited once a payment is signed, before it is sent: here it can be kept where it outlives this
   * process, for `resume`. If it throws, nothing is sent. A payment that was given to it stays booked until
   * it has expired unused, even if it is never sent, since it may have been kept.
   */
  beforeSend?: ((payment: SignedPayment) => Promise<void> | void) | undefined;
  /** Is asked for funds when no offered network has them. */
  topUp?: TopUp | undefined;
  /** Pays over plain HTTP too. Loopback may always be paid so. */
  allowInsecureHttp?: boolean | undefined;
  /** Longest body that can be sent again with a payment. Default 4 MiB. */
  maxBodyBytes?: number | undefined;
  /** Longest validity of an authorization, whatever the seller asks for. Default 600. */
  maxValiditySeconds?: number | undefined;
  /** How long the chains may take to tell the payer's funds. Default 5000. */
  balanceTimeoutMs?: number | undefined;
  /** How often one payment is sent at most. Default 5. */
  maxAttempts?: number | undefined;
  /**
   * How long an attempt to pay may take until its answer: the headers, and the reason of a refusal. Default 120 000. An
   * offer in a body may take as long, but at most 10 s.
   */
  attemptTimeoutMs?: number | undefined;
  /** Longest pause between two attempts. Default 30 000. */
  maxWaitMs?: number | undefined;
  /** Unix milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
  /** Cryptographically random bytes. Default: Web Crypto. */
  randomBytes?: ((size: number) => Uint8Array) | undefined;
  /** Resolves after so many milliseconds, rejects when the signal aborts. Default: a timer. */
  wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
};

/** The options, read and checked. */
export interface PayingFetchContext {
  account: PayingAccount;
  chains: ChainReader;
  assets: readonly SpendableAsset[];
  budget: SpendingBudget;
  fetch: typeof fetch;
  onPayment: (event: PaymentEvent) => void;
  beforeSend: ((payment: SignedPayment) => Promise<void> | void) | undefined;
  topUp: TopUp | undefined;
  topUpLimit: TopUpLimit;
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
 * @throws PaymentError `invalid_configuration`, which names everything that is wrong at once.
 */
export function readOptions(options: PayingFetchOptions): PayingFetchContext {
  const problems: string[] = [];
  const positive = (key: NumericOption, byDefault: number): number => {
    const value = options[key] ?? byDefault;
    if (!Number.isSafeInteger(value) || value <= 0) problems.push(`${key} is no positive integer`);
    else if (key.endsWith("Ms") && value > maxTimerMs) {
      problems.push(`${key} is longer than ${maxTimerMs}`);
    }
    return value;
  };
  const { rpcUrls, budget = {}, now = Date.now } = options;
  const account = readPayer(options, problems);
  const timeoutMs = positive("balanceTimeoutMs", 5000);
  const chains = createChainReader({ rpcUrls: rpcUrls ?? {}, timeoutMs, problems });
  const assets = readBudget(budget, problems);
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
    assets,
    budget: createSpendingBudget({ store, now, chains }),
    fetch: options.fetch ?? fetch,
    onPayment: guard(options.onPayment),
    beforeSend: options.beforeSend,
    topUp: options.topUp,
    topUpLimit: createTopUpLimit(),
    allowInsecureHttp: options.allowInsecureHttp ?? false,
    now,
    randomBytes:
      options.randomBytes ?? ((size) => globalThis.crypto.getRandomValues(new Uint8Array(size))),
    wait: options.wait ?? ((ms, signal) => sleep(ms, undefined, signal ? { signal } : {})),
  };
}

/** A timer that is to wait longer fires at once. */
const maxTimerMs = 2 ** 31 - 1;

type NumericOption =
  | "maxBodyBytes"
  | "maxValiditySeconds"
  | "balanceTimeoutMs"
  | "maxAttempts"
  | "attemptTimeoutMs"
  | "maxWaitMs";

function guard(onPayment: PayingFetchOptions["onPayment"]): PayingFetchContext["onPayment"] {
  // It begins at once, as every async function does; a rejection that nobody handles would end the process.
  const tell = async (event: PaymentEvent) => onPayment?.(event);
  return (event) => {
    tell(event).catch((error: unknown) => {
      process.emitWarning(error instanceof Error ? error : new Error("onPayment threw"));
    });
  };
}
