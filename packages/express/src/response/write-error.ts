import { ConfigurationError, FacilitatorError } from "@coinslot/protocol";
import { SellerFunctionError } from "../offer/seller-function-error.ts";
import { FreeVerbWarning } from "../routes/warn-unsold-methods.ts";

/**
 * Tells a fault to the operator where no other way was given. Of an error that is not ours it says
 * the name alone: its words may hold the address of a node, and with it a key.
 */
export function writeError(error: unknown): void {
  console.error(`coinslot: ${wordsOf(error)}`);
}

function wordsOf(error: unknown): string {
  const ours = [ConfigurationError, FacilitatorError, FreeVerbWarning, SellerFunctionError];
  if (error instanceof Error && ours.some((kind) => error instanceof kind)) return error.message;
  return `${error instanceof Error ? error.name : typeof error} (pass onError to see all of it)`;
}
