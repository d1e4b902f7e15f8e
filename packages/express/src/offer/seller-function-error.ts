/**
 * A function of the seller's threw, or returned an unusable value. The message names the function
 * and its route.
 */
export class SellerFunctionError extends Error {
  override readonly name = "SellerFunctionError";
}

/**
 * Calls a function of the seller's.
 *
 * @throws SellerFunctionError for anything that it throws
 */
export async function askSeller<T>(
  hook: string,
  routeKey: string,
  ask: () => T,
): Promise<Awaited<T>> {
  try {
    return await ask();
  } catch (cause) {
    throw new SellerFunctionError(`${hook} of "${routeKey}" threw`, { cause });
  }
}
