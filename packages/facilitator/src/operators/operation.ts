import type { Network } from "@coinslot/protocol";
import type * as z from "zod";
import type { OperatorCaller } from "../audit/audit-entry.ts";
import type { ClaimByOperator } from "../channels/operators/claim-by-operator.ts";
import type { OperatorsRefund } from "../channels/operators/refund-by-operator.ts";
import type { ChannelRefund } from "../ledger/channels/channel-refunds.ts";
import type { LedgerContext, LedgerReads } from "../ledger/ledger-context.ts";
import type { SellerView } from "../reads/seller-view.ts";
import type { Refunds } from "../refunds/refund.ts";
import type { StopFollower } from "../stops/follow-stops.ts";

/** Parts of the running process that an operation uses besides the ledger. */
export interface SellerParts {
  readonly stops: Pick<StopFollower, "change">;
  readonly refunds: Omit<Refunds, "list" | "get" | "create">;
  /** Looks at the refunds that are due, now. */
  readonly wakeRefunds: () => void;
  readonly claimChannels: ClaimByOperator;
  /** Gives back what was not charged on a channel. */
  readonly refundChannel: (network: Network, asked: OperatorsRefund) => Promise<ChannelRefund>;
  readonly view: SellerView;
}

/** Context of an operation that writes. */
export interface OperatorContext {
  /** Its writes have the entry of the audit log in their transaction. */
  readonly ledger: LedgerContext;
  readonly caller: OperatorCaller;
  /** `undefined` in a command that works on the ledger without a running seller. */
  readonly seller: SellerParts | undefined;
}

interface OperationShape<Argument extends z.ZodType, Result extends z.ZodType> {
  /** Its path after `POST /`, such as `refunds.create`. Part of the wire: it never changes. */
  readonly name: string;
  /** Schema of the argument. Its input is JSON. */
  readonly argument: Argument;
  /** Schema of the result. Its input is JSON, also of a later release: it lets members pass. */
  readonly result: Result;
  /** Bound of the argument as JSON. Default 16 KiB. */
  readonly maxArgumentBytes?: number;
  /** `false`: it moves nothing, and is left out of the audit log. Default: acts are in it. */
  readonly isAudited?: false;
  /** Time for which a caller waits for the answer. Default 15 s. */
  readonly timeoutMs?: number;
}

/** A command of the operator that reads. It runs beside any holder of the ledger. */
export interface ReadOperation<Argument extends z.ZodType, Result extends z.ZodType>
  extends OperationShape<Argument, Result> {
  readonly access: "read";
  /**
   * The running process knows more: from outside, its socket is asked before its ledger is read.
   */
  readonly asksSeller?: boolean;
  /**
   * @param seller `undefined` beside the ledger: then the facts of the running process are missing
   */
  run(
    reads: LedgerReads,
    argument: z.output<Argument>,
    seller?: SellerView,
  ): Promise<z.input<Result>>;
}

/**
 * A command of the operator that writes. A repetition with the same argument changes nothing more:
 * a caller repeats it where a process has ended before its answer. `run` refuses by an
 * `OperationRefusedError`, whose message the operator reads. Any other error is for the log.
 */
export interface WriteOperation<Argument extends z.ZodType, Result extends z.ZodType>
  extends OperationShape<Argument, Result> {
  readonly access: "write";
  run(context: OperatorContext, argument: z.output<Argument>): Promise<z.input<Result>>;
}

/** A command of the operator that needs the chains or the keys of a running process. */
export interface SellerOperation<Argument extends z.ZodType, Result extends z.ZodType>
  extends OperationShape<Argument, Result> {
  readonly access: "seller";
  run(seller: SellerParts, argument: z.output<Argument>): Promise<z.input<Result>>;
}

/** A command of the operator, with its wire: `POST /<name>`, JSON in and out. */
export type Operation<
  Argument extends z.ZodType = z.ZodType,
  Result extends z.ZodType = z.ZodType,
> =
  | ReadOperation<Argument, Result>
  | WriteOperation<Argument, Result>
  | SellerOperation<Argument, Result>;

/**
 * Infers the schemas' types for `run`. An operation is served once `registry.ts` lists it. No text
 * of its argument has a NUL character: PostgreSQL stores and compares none.
 */
export function defineOperation<Argument extends z.ZodType, Result extends z.ZodType>(
  operation: Operation<Argument, Result>,
): Operation<Argument, Result> {
  const { argument } = operation;
  return { ...operation, argument: argument.refine(hasNoNul, "has a NUL character") };
}

function hasNoNul(value: unknown): boolean {
  if (typeof value === "string") return !value.includes("\0");
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every(hasNoNul);
}
