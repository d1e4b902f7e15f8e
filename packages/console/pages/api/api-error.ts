/**
 * An answer of the console other than a result: what happened, what to do, a code to search for.
 */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly remedy: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(textOf(body.message) ?? "The console did not answer as expected.");
    this.status = status;
    this.code = textOf(body.code) ?? `status_${status}`;
    this.remedy = textOf(body.remedy);
    this.details = body;
  }
}

/** The answer where nothing was heard from the console. */
export function unreachable(): ApiError {
  return new ApiError(0, {
    code: "unreachable",
    message: "The console does not answer.",
    remedy: "Look whether its process runs, and whether this device has a network.",
  });
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
