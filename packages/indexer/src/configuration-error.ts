/** The configuration cannot work. `problems` names every fault, one sentence each. */
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
