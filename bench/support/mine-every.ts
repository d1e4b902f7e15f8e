import type { Devnet } from "@coinslot/devnet";

/**
 * Mines a block at each multiple of an interval, also where that is no whole second. A block that
 * comes late does not move those after it.
 *
 * @returns ends that, and resolves when the last block is mined
 */
export function mineEvery(devnet: Pick<Devnet, "mine">, intervalMs: number): () => Promise<void> {
  const startedAt = performance.now();
  let mined = 0;
  let timer: NodeJS.Timeout | undefined;
  let mining = Promise.resolve();
  schedule();

  function schedule(): void {
    mined += 1;
    timer = setTimeout(
      () => {
        mining = devnet.mine();
        schedule();
      },
      startedAt + mined * intervalMs - performance.now(),
    );
  }

  return () => {
    clearTimeout(timer);
    return mining;
  };
}
