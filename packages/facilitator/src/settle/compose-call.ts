import type { Address, Hex } from "@coinslot/protocol";
import { encodeTransfer } from "../token/encode-transfer.ts";
import { encodeBatch } from "./batch-calldata.ts";
import type { Candidate } from "./choose-batch.ts";
import { calldataGas, gasLimitOf } from "./gas.ts";
import { signedTransferOf } from "./signed-transfer.ts";

/** What a transaction does, and the gas that it may use. */
export interface ComposedCall {
  to: Address;
  data: Hex;
  gasLimit: bigint;
}

/** One payment goes to its token directly, several go through Multicall3. */
export function composeCall(options: {
  chosen: readonly Candidate[];
  multicall3: Address | undefined;
  callGasCap: bigint;
}): ComposedCall {
  const { chosen, multicall3, callGasCap } = options;
  const calls = chosen.map((candidate) => {
    const { asset: target, authorization, signature } = signedTransferOf(candidate);
    const { payerHasCode } = candidate;
    return { target, callData: encodeTransfer({ authorization, signature, payerHasCode }) };
  });
  const [first] = calls;
  const [only] = chosen;
  if (first === undefined || only === undefined) throw new TypeError("A batch without payments");
  if (chosen.length === 1 || multicall3 === undefined) {
    const { target: to, callData: data } = first;
    // Somebody else's code runs here: it gets what its simulation was granted, and no more.
    const gasLimit = only.payerHasCode
      ? 21_000n + calldataGas(data) + callGasCap
      : gasLimitOf(data, only.gas);
    return { to, data, gasLimit };
  }
  const data = encodeBatch(calls);
  const gas = chosen.reduce((total, candidate) => total + candidate.gas, 0n);
  return { to: multicall3, data, gasLimit: gasLimitOf(data, gas) };
}
