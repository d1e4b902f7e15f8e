import { ConfigurationError } from "@coinslot/protocol";
import { isDatabaseError } from "@coinslot/storage";

/**
 * The error of a start that failed: all known problems at once, or the first error that is none.
 */
export function joinProblems(results: readonly PromiseSettledResult<unknown>[]): unknown {
  const causes = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  const problems = causes.flatMap((cause: unknown) => {
    if (cause instanceof ConfigurationError) return cause.problems;
    if (isDatabaseError(cause)) return [`The ledger cannot be used: ${cause.message}`];
    return undefined;
  });
  const known = problems.filter((problem) => problem !== undefined);
  if (known.length < problems.length) return causes[0];
  return new ConfigurationError("The facilitator", known, { cause: causes[0] });
}
