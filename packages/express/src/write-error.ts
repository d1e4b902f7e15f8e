import { ConfigurationError, FacilitatorError } from "@coinslot/protocol";

/**
 * Tells a fault to the operator where no other way was given. Of an error that is not ours it says
 * the name alone: its words may hold the address of a node, and with it a key.
 */
export function writeError(error: unknown): void {
  console.error(`coinslot: ${wordsOf(error)}`);
}

function wordsOf(error: unknown): string {
  if (error instanceof ConfigurationError || error instanceof FacilitatorError) {
    return error.message;
  }
  return `${error instanceof Error ? error.name : typeof error} (pass onError to see all of it)`;
}
