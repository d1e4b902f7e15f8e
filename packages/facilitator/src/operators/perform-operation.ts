import type { OperatorCaller } from "../audit/audit-entry.ts";
import { audited } from "../audit/audited.ts";
import type { LedgerContext, LedgerReads } from "../ledger/ledger-context.ts";
import type { Operation, OperatorContext } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";

/** Context of the operations of a running process. */
export interface OperatorParts {
  context: Omit<OperatorContext, "caller">;
  /** Runs a read apart from those of buyers. */
  read<Result>(work: (reads: LedgerReads) => Promise<Result>): Promise<Result>;
}

/**
 * Runs an operation in the process that holds the ledger. An act is in the audit log.
 *
 * @param argument as the operation's schema has parsed it
 * @returns the result as JSON has it
 * @throws OperationRefusedError in words for the operator
 */
export async function performOperation(
  { context, read }: OperatorParts,
  operation: Operation,
  argument: unknown,
  caller: OperatorCaller,
): Promise<unknown> {
  if (operation.access === "read") {
    return read((reads) => operation.run(reads, argument, context.seller?.view));
  }
  const work = async (ledger: LedgerContext): Promise<unknown> => {
    if (operation.access === "write") {
      return operation.run({ ...context, ledger, caller }, argument);
    }
    if (context.seller !== undefined) return operation.run(context.seller, argument);
    throw new OperationRefusedError("no_seller", "This process does not sell.");
  };
  if (operation.isAudited === false) return work(context.ledger);
  const act = { caller, operation: operation.name, argument };
  return audited(context.ledger, act, { isWithin: operation.access === "write", work });
}
