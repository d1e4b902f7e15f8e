/** With what the command ends. */
export const exitCode = {
  /** Done. */
  done: 0,
  /** It failed, and no money has moved. */
  failed: 1,
  /** It was not asked correctly: an option is missing or wrong, or the answer was no. */
  usage: 2,
  /** It is not known whether money has moved, or it is under way: the message says how to find out. */
  unclear: 3,
  /** Interrupted. */
  interrupted: 130,
} as const;

/** A fault in how the command was asked, in words for the person who did. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** It is not known whether money has moved, or it has and was not answered: the message says how to go on. */
export class UnclearError extends Error {
  override readonly name = "UnclearError";
}

/** The person interrupted it at a point of which more can be said than that it ended. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}
