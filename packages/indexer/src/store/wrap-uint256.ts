/**
 * A number modulo 2^256, the arithmetic of the chain. The gain of an address may be negative, or
 * exceed a uint256 on its way through mints and burns. Added to the opening, it comes out as the
 * balance all the same.
 */
export function wrapUint256(value: bigint): bigint {
  return BigInt.asUintN(256, value);
}
