/** What a check found, in sentences that say what to do. */
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
