/**
 * A configuration that cannot work, with everything that is wrong with it, in words that say what to
 * do. No problem repeats a secret: they are meant for the operator's terminal.
 */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  /** @param subject what is configured, as the beginning of the sentence: "The facilitator" */
  constructor(subject: string, problems: readonly string[], options: { cause?: unknown } = {}) {
    const list = problems.map((problem) => `\n  - ${problem}`).join("");
    super(`${subject} cannot start:${list}`, options);
    this.problems = problems;
    // An application that does not catch it shows its operator what is wrong, and no lines of ours.
    this.stack = `${this.name}: ${this.message}`;
    Object.defineProperty(this, "problems", { enumerable: false });
  }
}
