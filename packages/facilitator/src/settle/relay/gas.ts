import type { Hex } from "@coinslot/protocol";

/** Intrinsic gas of every transaction. */
const transactionGas = 21_000n;
/**
 * Gas that Multicall3 adds to a call, and the call's excess over its simulation. That has touched
 * the balances before; the call meets cold accounts and slots (EIP-2929).
 */
const callOverheadGas = 6_000n;
/**
 * Gas of all calls of a batch, at most. With its calldata and the margin of its limit it stays
 * below 2^24: EIP-7825 lets no transaction use more.
 */
export const maxCallsGas = 13_000_000n;
/** Gas of a transfer that is not unusual. A stablecoin behind a proxy takes less. */
const ordinaryCallGas = 110_000n;

/** Gas of a transaction's calldata (EIP-2028): 16 for a byte, 4 for a zero one. */
export function calldataGas(data: Hex): bigint {
  let zeros = 0;
  for (let index = 2; index < data.length; index += 2) {
    if (data.charCodeAt(index) === 48 && data.charCodeAt(index + 1) === 48) zeros += 1;
  }
  const bytes = data.length / 2 - 1;
  return BigInt(16 * (bytes - zeros) + 4 * zeros);
}

/**
 * Most gas that a transaction for one payment of a payer with code may use. It is its gas limit, or
 * a little more.
 */
export function gasAtRisk(callBytes: number, callGas: bigint): bigint {
  return transactionGas + 16n * BigInt(callBytes) + callGas;
}

/**
 * The limit for a transaction that runs a payer's code: no more than its simulation was granted. By
 * itself it is given exactly that after its calldata is paid.
 */
export function gasLimitForCode(data: Hex, callGas: bigint): bigint {
  return gasBeforeCall(data) + callGas;
}

/** Gas that a transaction has used when its call begins. */
export function gasBeforeCall(data: Hex): bigint {
  return transactionGas + calldataGas(data);
}

/** Gas that a transaction with one call has used beyond an ordinary call. */
export function excessGas(data: Hex, gasUsed: bigint): bigint {
  const excess = gasUsed - gasBeforeCall(data) - ordinaryCallGas;
  return excess > 0n ? excess : 0n;
}

/**
 * Gas of a batch that one payment takes, without its calldata. `measured` is the token call by
 * itself; an ordinary one where a node returns none.
 */
export function gasOfCall(measured: bigint | undefined): bigint {
  return (measured ?? ordinaryCallGas) + callOverheadGas;
}

/**
 * The limit for a transaction whose calls need `callsGas`. A call is given 63 of 64 parts of the
 * gas that is left (EIP-150). Unused gas is not paid, so the limit is a little higher than needed.
 */
export function gasLimitOf(data: Hex, callsGas: bigint): bigint {
  const needed = gasBeforeCall(data) + callsGas;
  return needed + needed / 16n + 20_000n;
}
