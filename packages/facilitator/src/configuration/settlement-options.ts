import { ConfigurationError } from "@coinslot/protocol";
import {
  type CodePayerLimits,
  defaultCodePayerLimits,
  type FreeRunLimit,
} from "../ledger/ledger-limits.ts";
import type { AnswerLimits } from "../ledger/payments/answer-quotas.ts";
import type { FaultPointName, FixedTimes, SettlementTimes } from "../settle/context.ts";
import type { ConfiguredTimes } from "../settle/pace/paced-times.ts";

/** Options of settlement. Every member has a default that fits payments. */
export interface SettlementOptions {
  /**
   * Time that `settle` waits for an outcome until it answers that it is pending. Default 30 s, or
   * four blocks and those that a payment waits for; 100 s at most.
   */
  settleTimeoutSeconds?: number | undefined;
  /** Time for which a kept answer can be had again with its key. Default one hour. */
  keepAnswersSeconds?: number | undefined;
  /** Answers larger than this are not kept. Default 1 MiB. */
  maxAnswerBytes?: number | undefined;
  /**
   * Maximum bytes of kept answers: a payer's (default 16 MiB), a process's (256 MiB), and in the
   * ledger (1 GiB). Beyond them the payer's own oldest goes, never another's.
   */
  answerLimits?: Partial<AnswerLimits> | undefined;
  /**
   * Limit of a payer's unpaid handler runs. This many in any case: default 20 in a minute. If that
   * is more, a share of its paid runs in as much time: default 0.5. Running requests count until
   * they are paid for.
   */
  releaseLimit?:
    | { count: number; windowSeconds: number; shareOfPaid?: number | undefined }
    | undefined;
  /**
   * Payers with code: contracts, and accounts that delegate to one (EIP-7702). Their code runs on
   * the relayer's gas. `false` refuses them.
   */
  payersWithCode?: false | PayersWithCodeOptions | undefined;
  /**
   * A process that has been silent for this long counts as dead. The same in all processes of a
   * ledger: each judges the others by its own. Default 10 s.
   */
  heartbeatLeaseSeconds?: number | undefined;
  /**
   * Payments in one transaction, at most. Default 64, as many as one trial takes. More would save
   * half a percent of their gas, and all would wait longer.
   */
  maxPaymentsPerTransaction?: number | undefined;
  /** Transactions of one relayer that no block holds yet, at most. Default 16. */
  maxTransactionsInFlight?: number | undefined;
  /** Times of the engine, in milliseconds. */
  times?: Partial<SettlementTimes> | undefined;
  /** Stops the process at a named place, in fault tests. */
  faultPoint?: ((name: FaultPointName) => void | Promise<void>) | undefined;
}

/** Limits of the risk taken on payers with code. */
export interface PayersWithCodeOptions {
  /**
   * Gas that payers without a record may have at risk within a minute, on each network. More of
   * them are answered 503 until some is given back. Default 4,000,000, enough for some twelve at a
   * time. Payments that a record vouches for may have four times as much.
   */
  gasPerMinute?: bigint | undefined;
  /** Time for which a payer that has burnt gas is refused. Default 24. */
  refusalHours?: number | undefined;
}

/** Settlement options with every default filled in; times in milliseconds. */
export interface SettlementSettings {
  keepAnswersMs: number;
  maxAnswerBytes: number;
  answerLimits: Partial<AnswerLimits>;
  releaseLimit: FreeRunLimit;
  acceptsPayersWithCode: boolean;
  codePayers: CodePayerLimits;
  heartbeatLeaseMs: number;
  maxPaymentsPerTransaction: number;
  maxTransactionsInFlight: number;
  times: FixedTimes;
  /** Times that are configured, instead of following the pace of blocks. */
  configuredTimes: ConfiguredTimes;
  faultPoint: (name: FaultPointName) => void | Promise<void>;
}

function readPayersWithCode(options: PayersWithCodeOptions, problems: string[]): CodePayerLimits {
  const { gasPerMinute = defaultCodePayerLimits.gasPerMinute, refusalHours } = options;
  if (typeof gasPerMinute !== "bigint" || gasPerMinute < 0n) {
    problems.push("payersWithCode.gasPerMinute must be a bigint, not negative");
  }
  if (refusalHours !== undefined && !(refusalHours >= 0 && refusalHours <= 87_600)) {
    problems.push("payersWithCode.refusalHours must be from 0 to 87600, ten years");
  }
  const refusalMs =
    refusalHours === undefined
      ? defaultCodePayerLimits.refusalMs
      : Math.round(refusalHours * 3_600_000);
  return { gasPerMinute, refusalMs };
}

/** Each comparison with NaN is false: a limit that is no number would bound nothing. */
function findNumberProblems(options: SettlementOptions): string[] {
  const { releaseLimit = { count: 20, windowSeconds: 60 }, answerLimits = {} } = options;
  const { settleTimeoutSeconds, heartbeatLeaseSeconds, keepAnswersSeconds } = options;
  const { maxAnswerBytes, maxPaymentsPerTransaction, maxTransactionsInFlight } = options;
  const { count = Number.NaN, windowSeconds, shareOfPaid } = releaseLimit;
  const checks = [
    {
      rule: "must be more than 0",
      numbers: {
        settleTimeoutSeconds,
        heartbeatLeaseSeconds,
        "releaseLimit.windowSeconds": windowSeconds,
      },
      isGood: (value: number) => value > 0 && Number.isFinite(value),
    },
    {
      rule: "must be a number, not negative",
      numbers: {
        keepAnswersSeconds,
        "releaseLimit.shareOfPaid": shareOfPaid,
        ...within("times", options.times),
      },
      isGood: (value: number) => value >= 0 && Number.isFinite(value),
    },
    {
      rule: "must be a whole number, not negative",
      numbers: {
        maxAnswerBytes,
        "releaseLimit.count": count,
        ...within("answerLimits", answerLimits),
      },
      isGood: (value: number) => Number.isInteger(value) && value >= 0,
    },
    {
      rule: "must be a whole number, 1 at least",
      numbers: { maxPaymentsPerTransaction, maxTransactionsInFlight },
      isGood: (value: number) => Number.isInteger(value) && value >= 1,
    },
  ];
  return checks.flatMap(({ rule, numbers, isGood }) =>
    Object.entries<number | undefined>(numbers).flatMap(([name, value]) =>
      value === undefined || isGood(value) ? [] : [`${name} ${rule}`],
    ),
  );
}

function within(place: string, numbers: object = {}): Record<string, number> {
  return Object.fromEntries(
    Object.entries(numbers).map(([name, value]) => [`${place}.${name}`, value]),
  );
}

/**
 * Fills in the defaults.
 *
 * @throws ConfigurationError
 */
export function readSettlementOptions(options: SettlementOptions): SettlementSettings {
  const { windowSeconds = 60, ...freeRuns } = options.releaseLimit ?? { count: 20 };
  const problems = findNumberProblems(options);
  const codePayers = readPayersWithCode(options.payersWithCode || {}, problems);
  if (problems.length > 0) throw new ConfigurationError("The facilitator", problems);
  const { settleTimeoutSeconds, times = {} } = options;
  const { leaseMs = 5_000, sweepMs = 1_000, leadMs = 1_000, ...otherTimes } = times;
  const { settlingMs = 10_000, idleMs = 60_000, disputeMs = 120_000, ...stillOther } = otherTimes;
  const { refundMs = 1_000, ...pacedTimes } = stillOther;
  return {
    keepAnswersMs: (options.keepAnswersSeconds ?? 3_600) * 1000,
    maxAnswerBytes: options.maxAnswerBytes ?? 1024 * 1024,
    answerLimits: options.answerLimits ?? {},
    releaseLimit: { ...freeRuns, windowMs: windowSeconds * 1000 },
    acceptsPayersWithCode: options.payersWithCode !== false,
    codePayers,
    heartbeatLeaseMs: (options.heartbeatLeaseSeconds ?? 10) * 1000,
    maxPaymentsPerTransaction: options.maxPaymentsPerTransaction ?? 64,
    maxTransactionsInFlight: options.maxTransactionsInFlight ?? 16,
    times: { leaseMs, sweepMs, leadMs, settlingMs, disputeMs, idleMs, refundMs },
    configuredTimes: {
      ...pacedTimes,
      settleTimeoutMs: settleTimeoutSeconds && settleTimeoutSeconds * 1000,
    },
    faultPoint: options.faultPoint ?? (() => undefined),
  };
}
