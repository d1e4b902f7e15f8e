/** The smallest of some sums; at least one. */
export function smallestOf(sums: Iterable<bigint>): bigint {
  const [smallest = 0n] = [...sums].sort((a, b) => (a < b ? -1 : Number(a > b)));
  return smallest;
}
