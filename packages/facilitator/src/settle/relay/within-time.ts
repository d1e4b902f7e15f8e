import type { Clock } from "@coinslot/chain";

/** Time of an endpoint. One that hangs must not hold up the transactions of the others. */
export const everywhereMs = 5_000;

/** Results that come in a limited time, in their places; `undefined` of the others. */
export async function withinTime<T>(
  clock: Pick<Clock, "setTimer">,
  ms: number,
  asked: readonly Promise<T>[],
): Promise<(T | undefined)[]> {
  const results: (T | undefined)[] = asked.map(() => undefined);
  const noted = asked.map(async (each, index) => {
    results[index] = await each;
  });
  let cancel = () => {};
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.setTimer(resolve, ms);
  });
  await Promise.race([Promise.all(noted), timeout]).finally(() => cancel());
  return [...results];
}
