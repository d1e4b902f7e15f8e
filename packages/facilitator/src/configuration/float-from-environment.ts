import { type Address, addressSchema } from "@coinslot/protocol";
import {
  type EnvironmentSource,
  readSecretVariable,
  readUnits,
  readVariable,
} from "./environment-source.ts";
import type { RefundOptions } from "./refund-options.ts";

type Float = { seedPhrase: string } | { privateKey: string } | { address: Address };

/**
 * Reads the float, which pays refunds, and its limits from `FACILITATOR_FLOAT_…`: by its key, or by
 * its address alone, where refunds wait for a signature made elsewhere. The facilitator checks
 * keys.
 *
 * @returns `undefined` where no account is named
 */
export function floatFromEnvironment(source: EnvironmentSource): RefundOptions | undefined {
  const maxPerDay = readUnits(source, "FACILITATOR_FLOAT_MAX_PER_DAY");
  const automaticMaxPerDay = readUnits(source, "FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY");
  const account = readFloat(source);
  if (account === undefined) {
    if (maxPerDay !== undefined || automaticMaxPerDay !== undefined) {
      source.tell(
        "FACILITATOR_FLOAT_MAX_PER_DAY and FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY are limits of a float: set FACILITATOR_FLOAT_SEED_PHRASE, FACILITATOR_FLOAT_PRIVATE_KEY or FACILITATOR_FLOAT_ADDRESS",
      );
    }
    return undefined;
  }
  return {
    ...account,
    ...(maxPerDay !== undefined && { maxPerDay }),
    ...(automaticMaxPerDay !== undefined && { automatic: { maxPerDay: automaticMaxPerDay } }),
  };
}

function readFloat(source: EnvironmentSource): Float | undefined {
  const seedPhrase = readSecretVariable(source, "FACILITATOR_FLOAT_SEED_PHRASE");
  const privateKey = readSecretVariable(source, "FACILITATOR_FLOAT_PRIVATE_KEY");
  const text = readVariable(source, "FACILITATOR_FLOAT_ADDRESS");
  const address = addressSchema.safeParse(text).data;
  if (text !== undefined && address === undefined) {
    source.tell(
      "FACILITATOR_FLOAT_ADDRESS: must be an address, 0x and 40 hexadecimal digits with a right checksum",
    );
  }
  const found: Float[] = [];
  if (seedPhrase !== undefined) found.push({ seedPhrase });
  if (privateKey !== undefined) found.push({ privateKey });
  if (address !== undefined) found.push({ address });
  if (found.length > 1) {
    source.tell(
      "FACILITATOR_FLOAT_SEED_PHRASE, FACILITATOR_FLOAT_PRIVATE_KEY and FACILITATOR_FLOAT_ADDRESS: leave out all but one",
    );
  }
  return found[0];
}
