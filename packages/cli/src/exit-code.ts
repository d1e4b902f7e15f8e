/** Process exit codes. */
export const exitCode = {
  /** Done. */
  done: 0,
  /** It failed, and no money has moved. */
  failed: 1,
  /** Usage error: an option is missing or wrong, or the answer was no. */
  usage: 2,
  /** Money may have moved, or is under way: the message says how to find out. */
  unclear: 3,
  /** Interrupted. */
  interrupted: 130,
} as const;

/** A usage error, in words for the person who ran the command. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Money may have moved, or has moved without an answer: the message says how to go on. */
export class UnclearError extends Error {
  override readonly name = "UnclearError";
}

/** An interrupt by the person, at a point with more to report than the end. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}
