import { type Address, CallerLimitedError } from "@coinslot/protocol";
import type { HostedContext } from "./hosted-context.ts";

/**
 * Runs a trial within the limit of its caller: one in vain has cost a node's work, and no money.
 * Those of a buyer's payload count for its payer at this caller: other buyers of the same seller
 * are served.
 *
 * @throws CallerLimitedError where the caller has had too many of them in a minute
 */
export async function withTrial<Result>(
  {
    trials,
    caller,
    payer,
  }: Pick<HostedContext, "trials"> & { caller: string; payer?: Address | undefined },
  work: () => Promise<{ isVain: boolean; result: Result }>,
): Promise<Result> {
  const begun = await trials.begin(payer === undefined ? caller : `${caller} ${payer}`);
  if ("limitedMs" in begun) {
    throw new CallerLimitedError("Too many calls of this caller were refused", {
      retryAfterSeconds: Math.ceil(begun.limitedMs / 1_000),
    });
  }
  let isVain = false;
  try {
    const done = await work();
    isVain = done.isVain;
    return done.result;
  } finally {
    begun.end({ isAbsent: isVain });
  }
}
