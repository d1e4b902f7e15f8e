/** The largest of these amounts; 0 where there is none. */
export function largest(amounts: readonly bigint[]): bigint {
  let most = 0n;
  for (const amount of amounts) if (amount > most) most = amount;
  return most;
}
