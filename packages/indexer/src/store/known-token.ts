import type { TokenName } from "../transfer.ts";

/** A configured token and its row in the database. */
export interface KnownToken extends TokenName {
  /** Its row in `indexer_tokens`. */
  id: number;
  chainId: number;
  /** In lowercase. */
  address: `0x${string}`;
  startBlock: number;
}
