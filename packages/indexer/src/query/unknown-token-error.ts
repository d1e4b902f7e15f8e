import type { TokenName } from "../transfer.ts";

/** No such chain, or no such token on that chain, in the configuration. */
export class UnknownTokenError extends Error {
  override readonly name = "UnknownTokenError";

  constructor({ blockchain, token }: TokenName) {
    super(`Token ${token} on chain ${blockchain} is not indexed here`);
  }
}
