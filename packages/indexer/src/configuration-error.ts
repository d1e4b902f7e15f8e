/** The configuration cannot work. `problems` names all that is wrong with it, one sentence each. */
export class IndexerConfigurationError extends Error {
  override readonly name = "IndexerConfigurationError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The indexer's configuration has problems:\n${problems.map((each) => `- ${each}`).join("\n")}`,
    );
    this.problems = problems;
  }
}
