/**
 * A configuration that cannot work. Its message lists all problems, each with a remedy. No problem
 * repeats a secret: the text is meant for the operator's terminal.
 */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  /** @param subject the configured part, as the beginning of the sentence: "The facilitator" */
  constructor(subject: string, problems: readonly string[], options: { cause?: unknown } = {}) {
    const list = problems.map((problem) => `\n  - ${problem}`).join("");
    super(`${subject} cannot start:${list}`, options);
    this.problems = problems;
    // An uncaught error then shows the operator the problems, and no lines of this package.
    this.stack = `${this.name}: ${this.message}`;
    Object.defineProperty(this, "problems", { enumerable: false });
  }
}
