/** An operation that was refused, in words for the operator. Nothing was changed. */
export class OperationRefusedError extends Error {
  override readonly name = "OperationRefusedError";
  /** Term for programs, such as `not_settled`. */
  readonly code: string;

  constructor(code: string, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}
