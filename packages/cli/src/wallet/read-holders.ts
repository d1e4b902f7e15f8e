import { type Address, isSameAddress, isWellFormedAddress } from "@coinslot/protocol";
import { UsageError } from "../exit-code.ts";
import { readAccount } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";

/** An account whose address the environment contains. */
export interface Holder {
  role: "relayer" | "seller" | "buyer";
  address: Address;
}

/**
 * Relayer, seller and buyer, as far as the environment has them.
 *
 * @throws UsageError when a secret or `PAY_TO` is invalid
 */
export function readHolders(env: Terminal["env"]): Holder[] {
  const relayer = readAccount(env, "FACILITATOR")?.address;
  const buyer = readAccount(env, "WALLET")?.address;
  const seller = readSeller(env);
  return [
    ...(relayer ? [{ role: "relayer" as const, address: relayer }] : []),
    ...(seller ? [{ role: "seller" as const, address: seller }] : []),
    ...(buyer ? [{ role: "buyer" as const, address: buyer }] : []),
  ];
}

function readSeller(env: Terminal["env"]): Address | undefined {
  const ofSeed = readAccount(env, "SELLER")?.address;
  const payTo = env.PAY_TO || undefined;
  if (payTo !== undefined && !isWellFormedAddress(payTo)) {
    throw new UsageError("PAY_TO is not an address.");
  }
  if (payTo !== undefined && ofSeed !== undefined && !isSameAddress(payTo, ofSeed)) {
    throw new UsageError("PAY_TO is not the address of SELLER_SEED_PHRASE: correct one of them.");
  }
  return ofSeed ?? payTo;
}
