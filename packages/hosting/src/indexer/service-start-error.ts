/**
 * The service could not start, or a command could not do its work. `problems` has all reasons, each
 * with its remedy.
 */
export class ServiceStartError extends Error {
  override readonly name = "ServiceStartError";
  readonly problems: readonly string[];

  constructor(
    problems: readonly string[],
    {
      failed = "The indexing service could not start",
      ...options
    }: { cause?: unknown; failed?: string } = {},
  ) {
    super(`${failed}:\n${problems.map((each) => `- ${each}`).join("\n")}`, options);
    this.problems = problems;
  }
}
