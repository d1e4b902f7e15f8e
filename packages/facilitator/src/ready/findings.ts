/** Findings of a check, in sentences that name the remedy. */
export interface Findings {
  /** With these the network cannot be served. */
  problems: string[];
  /** With these it can. */
  warnings: string[];
}

/** Puts findings together. */
export function joinFindings(findings: readonly Findings[]): Findings {
  return {
    problems: findings.flatMap(({ problems }) => problems),
    warnings: findings.flatMap(({ warnings }) => warnings),
  };
}
