import type { Address } from "@coinslot/protocol";
import { addressSchema } from "@coinslot/protocol";
import type { Environment } from "./facilitator-from-environment.ts";

/** Names of the variables of one float, of which one is set. */
const accounts =
  "FACILITATOR_FLOAT_SEED_PHRASE, FACILITATOR_FLOAT_PRIVATE_KEY or FACILITATOR_FLOAT_ADDRESS";

/** The float of a facilitator: `refunds` of its options. */
export type FloatSettings = (
  | { seedPhrase: string }
  | { privateKey: string }
  | { address: Address }
) & {
  maxPerDay?: bigint;
  automatic?: { maxPerDay: bigint };
};

/**
 * Reads the account that pays refunds, and its limits, as the hosted facilitator does. The
 * facilitator checks keys.
 *
 * @returns `undefined` where no account is named
 */
export function floatFromEnvironment(
  environment: Environment,
  tell: (problem: string) => void,
): FloatSettings | undefined {
  const maxPerDay = unitsOf(environment, "FACILITATOR_FLOAT_MAX_PER_DAY", tell);
  const automaticMaxPerDay = unitsOf(environment, "FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY", tell);
  const [account, ...others] = accountsOf(environment, tell);
  if (others.length > 0) tell(`set one of ${accounts}, and not several`);
  if (account === undefined) {
    if (maxPerDay !== undefined || automaticMaxPerDay !== undefined) {
      tell(`FACILITATOR_FLOAT_…MAX_PER_DAY limits a float: set ${accounts}`);
    }
    return undefined;
  }
  return {
    ...account,
    ...(maxPerDay !== undefined && { maxPerDay }),
    ...(automaticMaxPerDay !== undefined && { automatic: { maxPerDay: automaticMaxPerDay } }),
  };
}

function accountsOf(environment: Environment, tell: (problem: string) => void) {
  const seedPhrase = environment.FACILITATOR_FLOAT_SEED_PHRASE?.trim();
  const privateKey = environment.FACILITATOR_FLOAT_PRIVATE_KEY?.trim();
  const text = environment.FACILITATOR_FLOAT_ADDRESS?.trim();
  const address = addressSchema.safeParse(text).data;
  if (text && address === undefined) {
    tell("FACILITATOR_FLOAT_ADDRESS must be an address, with a right checksum");
  }
  return [
    ...(seedPhrase ? [{ seedPhrase }] : []),
    ...(privateKey ? [{ privateKey }] : []),
    ...(address === undefined ? [] : [{ address }]),
  ];
}

/** An amount in the smallest unit of each token. */
function unitsOf(
  environment: Environment,
  name: string,
  tell: (problem: string) => void,
): bigint | undefined {
  const text = environment[name]?.trim() || undefined;
  if (text === undefined) return undefined;
  if (/^[0-9]{1,78}$/.test(text)) return BigInt(text);
  tell(`${name} must be a whole number of the token's smallest unit, such as 50000000`);
  return undefined;
}
