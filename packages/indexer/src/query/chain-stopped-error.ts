/**
 * The chain was reorganised deeper than this index vouches for, so nothing of it is served. It may
 * be served again later: when its endpoints are on the indexed chain again, or after a rewind.
 */
export class ChainStoppedError extends Error {
  override readonly name = "ChainStoppedError";
  readonly retryable = true;

  constructor(chain: string) {
    super(`${chain} is not served: blocks that were final here are others on its chain now.`);
  }
}
