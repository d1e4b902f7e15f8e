/** Faults of a misbehaving token; the numbers are those of the contract's enum. */
export const behaviours = {
  honest: 0,
  ignoresReplay: 1,
  emitsNoTransfer: 2,
  transfersLess: 3,
  emitsOtherSender: 4,
  emitsTransferFirst: 5,
  burnsGas: 6,
  reverts: 7,
  wrongDomainSeparator: 8,
  takesFee: 9,
  returnsNothing: 10,
} as const;

export type Behaviour = keyof typeof behaviours;

/** A smart account's answers to a signature check; the numbers are those of the contract's enum. */
export const smartAccountAnswers = { honest: 0, refuses: 1, reverts: 2, burnsGas: 3 } as const;

export type SmartAccountAnswer = keyof typeof smartAccountAnswers;

/**
 * Conditions under which a lying wallet burns the given gas; the numbers are those of the
 * contract's enum.
 */
export const walletLies = { none: 0, hasOrigin: 1, hasColdBalance: 2, afterBlock: 3 } as const;

export type WalletLie = keyof typeof walletLies;
