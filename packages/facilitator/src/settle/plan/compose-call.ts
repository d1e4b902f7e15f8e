import type { Address, Hex } from "@coinslot/protocol";
import { encodeBatch } from "../batch-calldata.ts";
import { gasLimitForCode, gasLimitOf } from "../relay/gas.ts";
import type { PreparedCandidate } from "./prepare-candidates.ts";

/** The call that a transaction makes, and the gas that it may use. */
export interface ComposedCall {
  to: Address;
  data: Hex;
  gasLimit: bigint;
}

/** One payment calls its contract directly, several go through Multicall3. */
export function composeCall(options: {
  chosen: readonly [PreparedCandidate, ...PreparedCandidate[]];
  multicall3: Address | undefined;
  callGasCap: bigint;
}): ComposedCall {
  const { chosen, multicall3, callGasCap } = options;
  const [first] = chosen;
  if (chosen.length === 1 || multicall3 === undefined) {
    const { target: to, callData: data, payerHasCode, gas } = first;
    const gasLimit = payerHasCode ? gasLimitForCode(data, callGasCap) : gasLimitOf(data, gas);
    return { to, data, gasLimit };
  }
  const data = encodeBatch(chosen);
  const gas = chosen.reduce((total, candidate) => total + candidate.gas, 0n);
  return { to: multicall3, data, gasLimit: gasLimitOf(data, gas) };
}
