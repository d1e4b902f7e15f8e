/**
 * The trial of a claim on the chain, with the state read before it, all at one block's end.
 */
export interface SimulationResult {
  /** Result of the token call when it was tried. */
  outcome: "succeeded" | "reverted";
  /** Reason of the revert, in the token's words, as far as it gave any. */
  revertReason?: string | undefined;
  /**
   * True if the call had its full effect. The payer lost the value, the recipient gained it, and
   * the authorization was unused before and used after. `undefined` where the node shows no
   * effects, and no state read before the call proves that there can be none.
   */
  isExact?: boolean | undefined;
  /** True if the authorization was used or cancelled before. */
  isUsed: boolean;
  /** The payer's balance before, in the token's smallest unit. 0 where the asset returns none. */
  balance: bigint;
  /** Contracts have code, and accounts that delegate to one (EIP-7702). */
  payerHasCode: boolean;
  assetHasCode: boolean;
  /**
   * Gas of the token call by itself, with the balances already touched; `undefined` where not
   * shown.
   */
  gasUsed?: bigint | undefined;
  blockNumber: bigint;
  /** Unix seconds. */
  blockTimestamp: bigint;
}

/**
 * Returns whether the transfer would be made, exactly as signed. A call that succeeds is not
 * enough: a token may return normally from one that did nothing, or something else.
 */
export function goesThrough({ outcome, isUsed, isExact }: SimulationResult): boolean {
  return outcome === "succeeded" && !isUsed && isExact !== false;
}
