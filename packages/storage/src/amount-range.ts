/** @throws RangeError */
export function uint256(amount: bigint): bigint {
  if (amount < 0n || amount >= 1n << 256n) throw new RangeError(`Not a uint256: ${amount}`);
  return amount;
}

/** @throws RangeError */
export function atMost99Digits(sum: bigint): bigint {
  if (sum < 0n || sum >= 10n ** 99n) throw new RangeError(`Not a sum of amounts: ${sum}`);
  return sum;
}
