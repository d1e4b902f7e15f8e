import type { SignHash } from "../settle/relay/remote-signer.ts";

/** A signer that asks nothing for a while after a failure: each refund would wait for it anew. */
export function restAfterFailure(
  sign: SignHash,
  { now, restMs }: { now: () => number; restMs: number },
): SignHash {
  let failure: { error: unknown; at: number } | undefined;
  return async (hash) => {
    if (failure !== undefined && now() < failure.at + restMs) throw failure.error;
    try {
      const signature = await sign(hash);
      failure = undefined;
      return signature;
    } catch (error) {
      failure = { error, at: now() };
      throw error;
    }
  };
}
