/** The service could not start. `problems` has all reasons, each with its remedy. */
export class ServiceStartError extends Error {
  override readonly name = "ServiceStartError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: { cause?: unknown }) {
    super(
      `The indexing service could not start:\n${problems.map((each) => `- ${each}`).join("\n")}`,
      options,
    );
    this.problems = problems;
  }
}
