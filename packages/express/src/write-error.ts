/** Tells a fault to the operator where no other way was given: its words, and nothing else of it. */
export function writeError(error: unknown): void {
  console.error(`coinslot: ${error instanceof Error ? error.message : String(error)}`);
}
