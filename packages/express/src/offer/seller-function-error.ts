/** A function of the seller's threw, or returned what cannot be used. The message says which, and of which route. */
export class SellerFunctionError extends Error {
  override readonly name = "SellerFunctionError";
}

/**
 * Asks a function of the seller's.
 *
 * @throws SellerFunctionError for whatever it throws
 */
export async function askSeller<T>(
  what: string,
  routeKey: string,
  ask: () => T,
): Promise<Awaited<T>> {
  try {
    return await ask();
  } catch (cause) {
    throw new SellerFunctionError(`${what} of "${routeKey}" threw`, { cause });
  }
}
