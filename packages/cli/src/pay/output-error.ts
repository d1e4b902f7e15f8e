/** The answer could not be written to its output. The read part of it is lost. */
export class OutputError extends Error {
  override readonly name = "OutputError";
  /** True if the reader of the output has left, as `head` does. */
  readonly isReaderGone: boolean;

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.isReaderGone = cause instanceof Error && "code" in cause && cause.code === "EPIPE";
  }
}

/** Runs a write, and throws an OutputError when it fails. */
export async function writing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (cause) {
    throw new OutputError(cause);
  }
}
