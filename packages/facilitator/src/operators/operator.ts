import * as z from "zod";
import type { CallerWords } from "./caller-headers.ts";
import type { Operation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";
import { type OperatorParts, performOperation } from "./perform-operation.ts";
import { type OperatorPlace, runOperation } from "./run-operation.ts";

/** Runs operations of the operator: in the seller's process, or from outside. */
export interface Operator {
  /**
   * Runs an operation. A read runs apart from those of buyers.
   *
   * @param words of the caller, for the audit log: its account, and its key of idempotency
   * @throws OperationRefusedError in words for the operator: nothing was changed. `malformed` is
   * the code of a wrong argument
   */
  run<Argument extends z.ZodType, Result extends z.ZodType>(
    operation: Operation<Argument, Result>,
    argument: z.input<Argument>,
    words?: CallerWords,
  ): Promise<z.output<Result>>;
}

/**
 * The operator of a ledger, or of a seller that serves its operator over HTTP.
 *
 * @example
 * ```ts
 * const operator = operatorAt("sqlite:./coinslot.db");
 * const { refunds } = await operator.run(listRefundsOperation, { state: "review" });
 * ```
 */
export function operatorAt(place: OperatorPlace): Operator {
  return {
    run: async (operation, argument, words) => {
      checkArgument(operation, argument);
      return runOperation(place, operation, argument, words);
    },
  };
}

/** The operator of the process that holds the ledger. */
export function operatorWithin(
  withParts: <Result>(work: (parts: OperatorParts) => Promise<Result>) => Promise<Result>,
): Operator {
  return {
    run: async (operation, argument, words) => {
      const checked = checkArgument(operation, argument);
      const caller = { ...words, via: "process", actor: "facilitator.operator" } as const;
      const result = await withParts((parts) =>
        performOperation(parts, operation, checked, caller),
      );
      return operation.result.parse(result);
    },
  };
}

function checkArgument<Argument extends z.ZodType, Result extends z.ZodType>(
  { argument: schema }: Operation<Argument, Result>,
  argument: z.input<Argument>,
): z.output<Argument> {
  const checked = schema.safeParse(argument);
  if (checked.success) return checked.data;
  const message = `The argument is malformed: ${z.prettifyError(checked.error)}`;
  throw new OperationRefusedError("malformed", message);
}
