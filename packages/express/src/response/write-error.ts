import { ConfigurationError, FacilitatorError } from "@coinslot/protocol";
import { SellerFunctionError } from "../offer/seller-function-error.ts";
import { FreeVerbWarning } from "../routes/warn-unsold-methods.ts";

/**
 * Writes a fault to standard error, where no `onError` was given. Of a foreign error it writes the
 * name alone. The message may hold the address of a node, and with it a key.
 */
export function writeError(error: unknown): void {
  console.error(`coinslot: ${wordsOf(error)}`);
}

function wordsOf(error: unknown): string {
  const ours = [ConfigurationError, FacilitatorError, FreeVerbWarning, SellerFunctionError];
  if (error instanceof Error && ours.some((kind) => error instanceof kind)) return error.message;
  return `${error instanceof Error ? error.name : typeof error} (pass onError to see all of it)`;
}
