import type { RefundOptions } from "@coinslot/facilitator";
import { type Address, addressSchema } from "@coinslot/protocol";
import { type Environment, readSecret } from "../environment/read-secret.ts";

/**
 * Reads the float, which pays refunds: by its key, or by its address alone, where refunds wait for a
 * signature made elsewhere. Undefined without either. The facilitator checks keys.
 */
export function readRefundSettings(
  env: Environment,
  tell: (problem: string) => void,
): RefundOptions | undefined {
  const maxPerDay = readUnits(env, "FACILITATOR_FLOAT_MAX_PER_DAY", tell);
  const automaticMaxPerDay = readUnits(env, "FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY", tell);
  const account = readFloat(env, tell);
  if (account === undefined) {
    if (maxPerDay !== undefined || automaticMaxPerDay !== undefined) {
      tell(
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

type Float = { seedPhrase: string } | { privateKey: string } | { address: Address };

function readFloat(env: Environment, tell: (problem: string) => void): Float | undefined {
  const seedPhrase = readSecret(env, "FACILITATOR_FLOAT_SEED_PHRASE", tell);
  const privateKey = readSecret(env, "FACILITATOR_FLOAT_PRIVATE_KEY", tell);
  const text = env.FACILITATOR_FLOAT_ADDRESS?.trim() || undefined;
  const address = addressSchema.safeParse(text).data;
  if (text !== undefined && address === undefined) {
    tell(
      "FACILITATOR_FLOAT_ADDRESS: must be an address, 0x and 40 hexadecimal digits with a right checksum",
    );
  }
  const found: Float[] = [];
  if (seedPhrase !== undefined) found.push({ seedPhrase });
  if (privateKey !== undefined) found.push({ privateKey });
  if (address !== undefined) found.push({ address });
  if (found.length > 1) {
    tell(
      "FACILITATOR_FLOAT_SEED_PHRASE, FACILITATOR_FLOAT_PRIVATE_KEY and FACILITATOR_FLOAT_ADDRESS: leave out all but one",
    );
  }
  return found[0];
}

/** An amount in the smallest unit of each token. */
function readUnits(
  env: Environment,
  name: string,
  tell: (problem: string) => void,
): bigint | undefined {
  const text = env[name]?.trim() || undefined;
  if (text === undefined) return undefined;
  if (/^[0-9]{1,78}$/.test(text)) return BigInt(text);
  tell(`${name}: must be a whole number of the token's smallest unit, such as 50000000`);
  return undefined;
}
